"""What the page shows after an event: one value with everything in sight."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from components.checks import checks
from components.copy import speak, words
from components.heading import heading_of
from components.in_words import in_words
from components.lesson_player import strip
from components.panel import Panel, View
from components.panels import CHAT, INSIDE, TOKEN
from components.sharing.contents import contents
from components.status import failure
from components.status import stations as status_stations
from components.transcript_strip import conversation, timeline
from components.visit import Visit
from components.widgets import host, rail, token_strip
from components.widgets.rail import Station
from engine.experiment import ExperimentError
from engine.refusals import Refused

#: Buttons, outside the panels, that can do nothing before the page is open: until then they are disabled.
BUTTONS = (
    *("lessons", "link", "record-open", "record-save", "record-page"),
    *("step", "run", "stop", "back", "new", "edit", "save-edit", "run-live", "move-left", "move-right"),
)

#: Seconds of making a frame above which it pays to send the token ahead of it: about what sending it takes.
SLOW_FRAME = 0.008


def early(visit: Visit, said: str = "") -> dict[str, Any]:
    """The feed's value while the first model is being loaded: the language, and how far the model has come."""
    first = {"notice": rail.value([Station("", "", said)])} if said else {}
    return host.feed_value(first, {}, hidden={}, disabled={}, language=visit.language, began=host.moment())


def frame(
    view: View, visit: Visit, parts: Mapping[str, Sequence[gr.HTML]], panel: Panel, *, began: int
) -> dict[str, Any]:
    """The feed's value: everything in sight, anew. A panel that is not in sight keeps what it shows.

    `parts` are the widgets of each panel, `panel` is the one in sight; `began` is when the view began to be read.
    """
    speak(visit.language)
    trouble = [Station("trouble", "", said, "", "warn") for said in (visit.notice, failure(view)) if said]
    if visit.link is not None and view.trace is not None and not view.trace.events:
        trouble.append(Station("link", "", contents(view.trace.experiment), "", "accent"))
    if visit.loading:
        trouble.append(Station("loading", "", visit.loading, "", "accent"))
    if visit.editing is not None:
        trouble.append(Station("editing", "", words("page").text("editing", number=visit.editing + 1), "", "accent"))
    trouble += [Station("said", "", visit.said, "", "accent")] if visit.said else []
    alone = view.recorded is not None and view.recorded.alone
    # A lesson's strip has a button of its own that leaves the record.
    in_lesson = visit.reading is not None and visit.reading.lesson_id is not None and not visit.reading.listing
    trouble += recorded_notice(view, in_lesson=in_lesson)
    reason = panel.unavailable(view)
    # The panel first: what its probes give is at hand then for the rail and the checks.
    try:
        drawn = {} if reason else _drawn(panel, view, parts[panel.STATION])
    except (ExperimentError, Refused) as refused:
        drawn, reason = {}, in_words(refused)
    everywhere = {
        "rail": rail.value(
            _stations(TOKEN, view),
            active=visit.station,
            more=[
                (words("page").text("rail_inside"), _stations(INSIDE, view)),
                (words("page").text("rail_chat"), _stations(CHAT, view)),
            ],
        ),
        strip.STRIP: strip.value(visit, alone=alone),
        "notice": rail.value(trouble),
        **_text(view),
        "status": rail.value(recorded_badge(view) + status_stations(view) + checks(view)),
    }
    idle = panel.CONTROLS.idle(view)
    inside = {f"{panel.STATION}-reason": rail.value([Station("", "", reason)] if reason else [])}
    inside |= {name: value for name, value in drawn.items() if value is not None}
    return host.feed_value(
        everywhere,
        inside,
        hidden={
            f"{panel.STATION}-body": bool(reason),
            "save-edit": visit.editing is None,
            "run-live": view.recorded is None or alone or in_lesson,
        }
        | {f"ask-{name}": idle for name in panel.CONTROLS.asks}
        | {part: value is None for name, value in drawn.items() for part in (name, heading_of(name))},
        disabled=dict.fromkeys(BUTTONS, False)
        | {"run": visit.running, "grid": visit.running, "stop": not (visit.running or visit.keeping)},
        language=visit.language,
        began=began,
    )


def ahead(before: Mapping[str, Any], view: View, visit: Visit, *, began: int) -> dict[str, Any]:
    """The feed's value `before` with the newest token in the text and the timeline: nothing else is to be shown."""
    speak(visit.language)
    newest = _text(view)
    return {**before, "first": before["first"] | newest, "only": dict.fromkeys(newest, True), "began": began}


def live(make: Callable[..., dict[str, Any]], steps: Iterator[None]) -> Iterator[dict[str, Any]]:
    """What the feed gets after each token of a run: a frame, and the token before it where frames take their time.

    `make` makes a frame, or what goes ahead of it when it is given the one before.
    """
    whole, seconds = None, 0.0
    for _ in steps:
        if whole is not None and seconds > SLOW_FRAME:
            yield make(whole)
        began = time.perf_counter()
        whole = make()
        seconds = time.perf_counter() - began
        yield whole


def _text(view: View) -> dict[str, Any]:
    return {
        "conversation": token_strip.value(conversation(view), selected=selected(view)),
        "timeline": token_strip.value(timeline(view), selected=selected(view), legend=legend(view)),
    }


def recorded_notice(view: View, *, in_lesson: bool = False) -> list[Station]:
    """That a record is shown, how far, and what can be done with it."""
    if view.recorded is None:
        return []
    shown = view.recorded
    key = "shown_alone" if shown.alone else "shown_lesson" if in_lesson else "shown"
    return [Station("record", "", words("record").text(key, made=shown.made, steps=shown.steps), "", "accent")]


def recorded_badge(view: View) -> list[Station]:
    """How far in two words, and where the record comes from, for the status line."""
    if view.recorded is None:
        return []
    shown = view.recorded
    origin = {"made_by": shown.made_by, "model": view.facts.title}
    return [Station("record", "", words("record").text("badge", made=shown.made, steps=shown.steps, **origin))]


def _stations(panels: Sequence[Panel], view: View) -> list[Station]:
    return [station for panel in panels for station in panel.stations(view)]


def _drawn(panel: Panel, view: View, parts: Sequence[gr.HTML]) -> dict[str, Any]:
    names = [str(part.elem_id) for part in parts]
    return dict(zip(names, panel.render(view), strict=True))


def selected(view: View) -> int | None:
    step = view.step
    return view.cursor.position if view.cursor.position is not None else (step.position if step else None)


def legend(view: View) -> list[tuple[str, str]]:
    tool = ["tool"] if view.trace and view.trace.experiment.tools else []
    roles = ("system", "user", "assistant", *tool, "scaffold")
    return [(role, words("page").text(f"legend:{role}")) for role in roles]
