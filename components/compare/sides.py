"""Two runs side by side from shortly before their first difference, with what each gave the other's token."""

from collections.abc import Sequence
from typing import Any

from components.compare.parting import Parting, parting, recorded
from components.copy import words
from components.panel import View
from components.units import probability_text
from components.visible import visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.experiment import ExperimentError
from engine.refusals import Refused
from engine.trace import Stepped, Trace

#: Pairs of a step and a token.
Asked = tuple[tuple[int, int], ...]

BEFORE, AFTER = 3, 40  # steps shown around the first difference


def sides_value(view: View, branch: Any) -> dict[str, Any] | None:
    """The two runs as a table; a sentence where there is no difference, None where there is no branch."""
    assert view.trace is not None
    say = words("compare")
    if branch is None:
        return None
    found = parting(view.trace, branch.trace)
    if found is None:
        return table.value([Column(say.text("branches_two"))], [[Cell(say.text("no_difference"), "dim")]])
    ours, theirs = view.trace.steps(found.turn), branch.trace.steps(found.their_turn)
    last = max(len(ours), len(theirs))
    shown = range(max(0, found.step - BEFORE), min(last, found.step + AFTER))
    columns = [
        Column(say.text("col_step"), align="right"),
        Column(say.text("col_here"), mono=True),
        Column(say.text("col_own"), align="right", help=say.text("col_own_help")),
        Column(say.text("col_other"), align="right", help=say.text("col_other_help")),
        Column(say.text("col_branch", id=branch.id), mono=True),
        Column(say.text("col_own"), align="right", help=say.text("col_own_help")),
        Column(say.text("col_other"), align="right", help=say.text("col_other_help")),
    ]
    rows = [_row(view, branch, found, step, ours[step : step + 1], theirs[step : step + 1]) for step in shown]
    at = found.step - shown.start if found.step in shown else None
    return table.value(columns, rows, selected=at, caption=caption(view.trace, branch, found))


def unknown(view: View, branch: Any) -> tuple[Asked, Asked]:
    """What the two sides gave each other's tokens and nobody has recorded, of the steps that are shown."""
    assert view.trace is not None
    found = parting(view.trace, branch.trace)
    if found is None:
        return (), ()
    both = (view.trace.steps(found.turn), branch.trace.steps(found.their_turn))
    asked: list[Asked] = []
    for own, other in (both, both[::-1]):
        pairs = list(zip(own, other, strict=False))[found.step : found.step + AFTER]
        asked.append(
            tuple((mine.step, theirs.token_id) for mine, theirs in pairs if recorded(mine, theirs.token_id) is None)
        )
    return asked[0], asked[1]


def caption(here: Trace, branch: Any, found: Parting) -> str:
    """Where the two part, in a sentence."""
    say = words("compare")
    if found.position is not None:
        return say.text("parted_context", turn=found.turn + 1, position=found.position)
    ours, theirs = here.steps(found.turn)[found.step :], branch.trace.steps(found.their_turn)[found.step :]
    if not ours or not theirs:
        return say.text("parted_end", step=found.step, turn=found.turn + 1)
    own, other = visible_bytes(ours[0].token_bytes), visible_bytes(theirs[0].token_bytes)
    said = say.text("parted", step=found.step, turn=found.turn + 1, here=own, there=other)
    before = [recorded(ours[0], token, stage=0) for token in (ours[0].token_id, theirs[0].token_id)]
    if before[0] is not None and before[1] is not None:
        first, second = (probability_text(one) for one in before if one is not None)
        said += " " + say.text("parted_own", here=own, there=other, first=first, second=second)
    return said


def _row(
    view: View, branch: Any, found: Parting, step: int, ours: Sequence[Stepped], theirs: Sequence[Stepped]
) -> list[Cell | str]:
    own, other = ours[0] if ours else None, theirs[0] if theirs else None
    differ = own is not None and other is not None and own.token_id != other.token_id
    # Where they part every probability is there: what was not followed is computed.
    exact = differ and step == found.step
    here = _gave(view, own, other, None, exact) if differ else ""
    there = _gave(view, other, own, branch.id, exact) if differ else ""
    tone: table.Tone = "accent" if step == found.step else "" if differ else "dim"
    return [Cell(str(step), tone), *_side(own, here, tone), *_side(other, there, tone)]


def _side(own: Stepped | None, gave: str, tone: table.Tone) -> list[Cell]:
    if own is None:
        return [Cell("", tone)] * 3
    probability = recorded(own, own.token_id)
    text = "" if probability is None else _text(probability)
    return [Cell(visible_bytes(own.token_bytes), tone), Cell(text, tone), Cell(gave, tone)]


def _gave(view: View, own: Stepped | None, other: Stepped | None, branch: int | None, exact: bool) -> str:
    """The probability that one run gave the other's token at this step, in its own context."""
    assert own is not None
    assert other is not None
    found = recorded(own, other.token_id)
    if found is None:
        found = view.results.get("crossed", {}).get((branch, own.turn, own.step, other.token_id))
    if found is None and exact and view.probe is not None:
        where = {} if branch is None else {"branch": branch}
        try:
            asked = view.probe("distribution", turn=own.turn, step=own.step, token_ids=(other.token_id,), **where)
            found = float(asked.probabilities[-1, 0])
        except (ExperimentError, Refused):
            found = None
    if found is None:
        return words("compare").text("not_followed")
    return _text(found)


def _text(probability: float) -> str:
    return "0" if probability == 0 else probability_text(probability)
