"""What is asked for a record that is to hold the inside of chosen steps: questions of the probes, as the page asks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.experiment import ExperimentError
from engine.facts import ModelFacts
from engine.said import said
from engine.trace import Trace

#: Probes of one position, by what else they are asked about.
WHOLE = ("lens", "residual", "embedding", "rotary")
OF_LAYERS = ("layer", "feed_forward")
OF_HEADS = ("attention", "relative_phase")
OF_A_STEP = (*WHOLE, *OF_LAYERS, *OF_HEADS)

#: What is kept where nothing else is asked for. The angles of "rotary" take ten times the room of anything else.
USUAL = ("lens", "residual", "embedding", *OF_LAYERS, "attention")

Question = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Wanted:
    """Which steps of a turn, and of the inside which probes, layers and heads.

    Of each layer the first of `heads` is asked about, of the first of `layers` each of `heads`: all heads of all
    layers would take a megabyte a step.
    """

    turn: int
    steps: tuple[int, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    probes: tuple[str, ...] = USUAL


def wanted(
    trace: Trace,
    facts: ModelFacts,
    steps: Sequence[int] | None = None,
    *,
    turn: int | None = None,
    layer: int = 0,
    head: int = 0,
    probes: Sequence[str] = USUAL,
) -> Wanted:
    """All layers and heads, the given ones first, at these steps of the turn or at all. Raises `ExperimentError`."""
    turn = max(0, trace.turns - 1) if turn is None else turn
    made = len(trace.steps(turn))
    chosen = tuple(range(made)) if steps is None else tuple(dict.fromkeys(steps))
    for step in chosen:
        if not 0 <= step < made:
            raise ExperimentError("steps", said("steps_of_turn", turn=turn, count=made, step=step))
    check_probes(probes)
    layers = (layer, *(other for other in range(facts.layers) if other != layer))
    heads = (head, *(other for other in range(facts.heads) if other != head))
    return Wanted(turn, chosen, layers, heads, tuple(probes))


def check_probes(names: Iterable[str]) -> None:
    """Raise `ExperimentError` for a probe that is not asked about a step."""
    for name in names:
        if name not in OF_A_STEP:
            raise ExperimentError("probes", said("unknown_here", name=name[:60], known=", ".join(OF_A_STEP)))


def steps_named(text: str) -> list[int]:
    """The steps that a person named, with commas or spaces between them. Raises ValueError for what is no number."""
    parts = text.replace(",", " ").split()
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise ValueError(f"numbers like 3,5 are wanted, got {text[:60]!r}")
    return [int(part) for part in parts]


def questions(trace: Trace, asked: Wanted) -> tuple[Question, ...]:
    """Every question, the model's own first; none about a turn that was never begun.

    The inside of a step is that of the position fed before it.
    """
    rendered = trace.rendered(asked.turn)
    if rendered is None:
        return ()
    first = len(rendered.token_ids) - 1
    found: list[Question] = [("model", {})]
    for step in asked.steps:
        where = {"turn": asked.turn, "position": first + step}
        found += [(name, where | more) for name in asked.probes for more in _more(name, asked)]
    return tuple(found)


def _more(name: str, asked: Wanted) -> Iterable[dict[str, int]]:
    if name in WHOLE:
        return [{}]
    if name in OF_LAYERS:
        return [{"layer": layer} for layer in asked.layers]
    one_head = [{"layer": layer, "head": asked.heads[0]} for layer in asked.layers]
    return one_head + [{"layer": asked.layers[0], "head": head} for head in asked.heads[1:]]
