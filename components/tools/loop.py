"""The loop of calls: each turn since the newest user message as a round, with its prefill, tokens and cache."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components.copy import sentences, words
from components.panel import View
from components.transcript_strip import grammar_forced
from components.units import bytes_text, seconds_text
from components.visible import running_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.dialogue import rounds_before
from engine.trace import Prefilled, Rendered, Stepped, Stopped, ToolCalled, Trace

LONGEST = 90  # characters of a call or a result in a cell; the whole shows on hover


@dataclass(frozen=True, eq=False)
class Round:
    """One turn of the loop: what it was fed, what it made, what it called."""

    number: int  # from 1
    turn: int
    rendered: Rendered
    prefilled: Prefilled | None
    steps: tuple[Stepped, ...]
    forced: int  # tokens that the grammar forced
    stopped: Stopped | None
    calls: tuple[ToolCalled, ...]

    @property
    def seconds(self) -> float:
        """The forwards and all else of the steps; the tools' own time is in their events."""
        made = sum(step.seconds + step.overhead_seconds for step in self.steps)
        return made + (self.prefilled.seconds if self.prefilled else 0.0)

    @property
    def cache(self) -> tuple[int, int] | None:
        """Positions and bytes that the cache held at the end of the turn."""
        last = self.steps[-1] if self.steps else self.prefilled
        return (last.kv_tokens, last.kv_bytes) if last else None


def rounds(trace: Trace, turn: int) -> list[Round]:
    """The rounds up to this turn since the user message that it belongs to."""
    first = turn - rounds_before(trace, turn)
    return [_round(trace, number, at) for number, at in enumerate(range(first, turn + 1), start=1)]


def loop_value(view: View, found: list[Round]) -> dict[str, Any]:
    """One row a round, and one more for each further call of it."""
    say = words("tools")
    columns = [
        Column(say.text("col_round"), align="right"),
        Column(say.text("col_computed"), align="right", help=say.text("help_computed")),
        Column(say.text("col_reused"), align="right", help=say.text("help_reused")),
        Column(say.text("col_made"), align="right", help=say.text("help_made")),
        Column(say.text("col_forced"), align="right", help=say.text("help_forced")),
        Column(say.text("col_cache"), align="right", help=say.text("help_cache")),
        Column(say.text("col_seconds"), align="right", help=say.text("help_seconds")),
        Column(say.text("col_call")),
        Column(say.text("col_result")),
    ]
    rows = [row for one in found for row in _rows(one, view.trace)]
    return table.value(columns, rows, caption=_caption(found))


def _round(trace: Trace, number: int, turn: int) -> Round:
    rendered, steps = trace.rendered(turn), trace.steps(turn)
    assert rendered is not None
    return Round(
        number=number,
        turn=turn,
        rendered=rendered,
        prefilled=trace.prefilled(turn),
        steps=steps,
        forced=sum(map(grammar_forced, steps)),
        stopped=trace.stopped(turn),
        calls=tuple(trace.of(ToolCalled, turn)),
    )


def _rows(one: Round, trace: Trace | None) -> Iterator[list[Cell | str]]:
    prefilled, cache = one.prefilled, one.cache
    head: list[Cell | str] = [
        str(one.number),
        _extent(prefilled),
        str(one.rendered.reused),
        str(len(one.steps)),
        str(one.forced) if one.forced else Cell("–", tone="dim"),
        Cell(str(cache[0]), title=bytes_text(cache[1])) if cache else "–",
        seconds_text(one.seconds),
    ]
    if not one.calls:
        yield [*head, Cell(_no_call(one), tone="dim"), _cell(trace.answer(one.turn) if trace else "")]
    blank: list[Cell | str] = [""] * 6
    for index, called in enumerate(one.calls):
        result = _cell(called.result or "") if called.error is None else _cell(called.error, "warn")
        first = head if index == 0 else [*blank, seconds_text(called.seconds)]
        yield [*first, _cell(called.name + _arguments(called.arguments), "accent"), result]


def _extent(prefilled: Prefilled | None) -> str:
    if prefilled is None:
        return "–"
    count = prefilled.last - prefilled.first + 1
    return words("tools").text("extent", count=count, first=prefilled.first, last=prefilled.last)


def _no_call(one: Round) -> str:
    say = words("tools")
    if one.stopped is None:
        return say.text("running")
    if one.stopped.reason == "tool_call":
        return say.text("not_run_yet")
    return say.text("over_limit" if one.stopped.reason == "tool_limit" else "no_call")


def _arguments(arguments: dict[str, Any]) -> str:
    return "(" + ", ".join(f"{name}={value!r}" for name, value in arguments.items()) + ")"


def _cell(text: str, tone: table.Tone = "") -> Cell:
    shown = running_text(text)
    return Cell(shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…", tone=tone, title=shown[:2_000])


def _caption(found: list[Round]) -> str:
    say = words("tools")
    text = say.text(
        "caption",
        turns=len(found),
        computed=sum(one.prefilled.last - one.prefilled.first + 1 for one in found if one.prefilled),
        reused=sum(one.rendered.reused for one in found),
        made=sum(len(one.steps) for one in found),
        calls=sum(len(one.calls) for one in found),
        seconds=seconds_text(sum(called.seconds for one in found for called in one.calls)),
    )
    if any(one.rendered.parted for one in found[1:]):
        text = sentences(text, say.text("caption_parted"))
    return text
