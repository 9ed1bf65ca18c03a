"""The strongest neurons of one layer, their tokens, and in words how few of them do how much."""

from typing import Any

from components.copy import words
from components.visible import visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.feed_forward import FeedForward

#: Between two tokens: an em space, which no visible token contains.
GAP = "\u2003"
#: Tokens on the first of a cell's two lines.
ON_FIRST_LINE = 3


def notes_value(found: FeedForward) -> dict[str, Any]:
    """How few fire, what the layer does to the next token, and the check."""
    say, own = words("feed_forward"), found.sparsity
    counts = {"neurons": own.neurons, "half": own.half, "positive": own.positive, "clear": own.clear}
    target = {"neuron": found.mover_id, "effect": found.mover_effect, "rank": found.mover_rank}
    check = {"neurons": own.neurons, "norm": found.output_norm, "difference": found.max_difference}
    return token_strip.value(
        [
            Group(
                [],
                label=say.text("few", layer=found.layer, **counts),
                note=say.text("few_said", **counts),
                as_text=True,
            ),
            Group(
                [],
                label=say.text("target", total=found.target_total, token=visible_bytes(found.target_bytes)),
                note=say.text("target_said" if found.target_chosen else "target_guess", **target),
                as_text=True,
            ),
            Group(
                [],
                label=say.text("check"),
                note=say.text("check_bias_said" if found.has_bias else "check_said", **check),
                as_text=True,
            ),
        ]
    )


def neurons_value(found: FeedForward) -> dict[str, Any]:
    """One neuron a line, the strongest push first."""
    say = words("feed_forward")
    columns = [
        Column(say.text("col_neuron"), align="right"),
        Column(say.text("col_activation"), align="right"),
        Column(say.text("col_push"), align="right", help=say.text("help_push")),
        Column(
            say.text("col_effect", token=visible_bytes(found.target_bytes)),
            align="right",
            help=say.text("help_effect"),
        ),
        Column(say.text("col_raised")),
        Column(say.text("col_lowered")),
    ]
    strongest = float(found.pushes[0]) or 1.0
    rows: list[list[Cell | str]] = [
        [
            str(int(found.neuron_ids[line])),
            f"{found.activations[line]:+.2f}",
            Cell(
                f"{found.pushes[line]:.2f}",
                bar=float(found.pushes[line]) / strongest,
                title=say.text("push_title", activation=found.activations[line], length=found.lengths[line]),
            ),
            Cell(
                f"{found.target_effects[line]:+.2f}",
                tone="accent" if int(found.neuron_ids[line]) == found.mover_id else "",
            ),
            _tokens(found, found.raised_ids[line], found.raised[line]),
            _tokens(found, found.lowered_ids[line], found.lowered[line]),
        ]
        for line in range(len(found.neuron_ids))
    ]
    return table.value(columns, rows, caption=say.text("neurons_said"))


def _tokens(found: FeedForward, ids: Any, effects: Any) -> Cell:
    """Tokens side by side, each with its effect on hover."""
    say = words("feed_forward")
    names = [visible_bytes(found.token_bytes[int(token)]) or say.text("no_token", id=int(token)) for token in ids]
    told = [
        say.text("effect_title", token=name, effect=float(effect)) for name, effect in zip(names, effects, strict=True)
    ]
    lines = (names[:ON_FIRST_LINE], names[ON_FIRST_LINE:])
    return Cell("\n".join(GAP.join(line) for line in lines), title="\n".join(told))
