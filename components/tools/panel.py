"""Station Tools: calls of tools as a loop of turns, the definitions in the prompt, and what the model saw back."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from components.copy import words
from components.heading import titled
from components.panel import Controls, View
from components.tools.loop import Round, loop_value, rounds
from components.transcript_strip import step_chips
from components.visible import running_text
from components.widgets import table, token_strip
from components.widgets.rail import Station
from components.widgets.token_strip import Chip, Group
from engine.dialogue import FALLBACK_OPENING
from engine.trace import Rendered, Span, ToolCalled

STATION = "tools"
CONTROLS = Controls()


def stations(view: View) -> list[Station]:
    return [Station(STATION, words(STATION).title, *_line(view))]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        titled(table.build, "tools-loop", say.text("loop"), height=420),
        titled(token_strip.build, "tools-forced", say.text("forced")),
        titled(token_strip.build, "tools-seen", say.text("seen")),
        titled(token_strip.build, "tools-definitions", say.text("definitions"), height=420),
    ]


def render(view: View) -> list[Any]:
    assert view.trace is not None and view.rendered is not None
    found = rounds(view.trace, view.cursor.turn)
    return [
        loop_value(view, found),
        forced_value(found),
        seen_value(view.rendered, found),
        definitions_value(view.rendered),
    ]


def unavailable(view: View) -> str | None:
    say = words(STATION)
    if view.trace is None or view.rendered is None:
        return say.text("unavailable")
    return None if view.trace.experiment.tools else say.text("no_tools")


def forced_value(found: list[Round]) -> dict[str, Any]:
    """The tokens of the answers that a grammar ruled: those it forced, and those that the model chose."""
    say = words(STATION)
    groups = [
        Group(
            step_chips(one.steps),
            label=say.text("forced_label", turn=one.number, forced=one.forced, made=len(one.steps)),
            note=say.text("forced_note", chosen=len(one.steps) - one.forced),
        )
        for one in found
        if one.forced
    ]
    if not groups:
        return token_strip.value([Group([], note=say.text("forced_none"), as_text=True)])
    return token_strip.value(groups)


def seen_value(rendered: Rendered, found: list[Round]) -> dict[str, Any]:
    """Every result as it stands in the context of the turn, with the marks around it.

    `found` ends with that turn, whose own calls come after what it was fed.
    """
    say = words(STATION)
    groups = list(_results(rendered, sum(len(one.calls) for one in found[:-1])))
    return token_strip.value(groups or [Group([], note=say.text("seen_empty"), as_text=True)])


def _results(rendered: Rendered, count: int) -> Iterator[Group]:
    """The last `count` tool messages."""
    say = words(STATION)
    messages = sorted({span.message for span in rendered.spans if span.role == "tool" and span.message is not None})
    for message in messages[-count:] if count else ():
        parts = [(index, span) for index, span in enumerate(rendered.spans) if span.message == message]
        first, last = _positions(rendered, parts[0][0], parts[-1][0])
        yield Group(
            [_chip(rendered, index, span) for index, span in parts],
            label=say.text("seen_label", first=first, last=last, count=last - first + 1),
            role="tool",
            as_text=True,
        )


def definitions_value(rendered: Rendered) -> dict[str, Any]:
    """The stretch of the prompt that tells the model of its tools."""
    say = words(STATION)
    for index, span in enumerate(rendered.spans):
        if (span.role, span.message) == ("tool", None):
            first, last = _positions(rendered, index, index)
            text = rendered.text[span.start : span.end]
            fallback = text.lstrip().startswith(FALLBACK_OPENING)
            label = say.text("definitions_label", first=first, last=last, count=last - first + 1)
            note = say.text("by_fallback" if fallback else "by_template")
            chip = Chip(running_text(text), position=first, role="tool")
            return token_strip.value([Group([chip], label=label, role="tool", note=note, as_text=True)])
    return token_strip.value([])


def _positions(rendered: Rendered, first: int, last: int) -> tuple[int, int]:
    """The first and the last position of the spans from `first` to `last`."""
    within = ((rendered.span_index >= first) & (rendered.span_index <= last)).nonzero()[0]
    return (int(within[0]), int(within[-1])) if len(within) else (0, 0)


def _chip(rendered: Rendered, index: int, span: Span) -> Chip:
    return Chip(
        text=running_text(rendered.text[span.start : span.end]),
        position=_positions(rendered, index, index)[0],
        role="scaffold" if span.kind == "scaffold" else "tool",
    )


def _line(view: View) -> tuple[str, str]:
    """The rail's result and note."""
    say = words(STATION)
    if view.trace is None or not view.trace.experiment.tools:
        return "–", ""
    choice = view.trace.experiment.tool_choice
    called = list(view.trace.of(ToolCalled))
    if not called:
        return say.text("station_none"), choice
    return say.text("station", count=len(called)), called[-1].name or choice
