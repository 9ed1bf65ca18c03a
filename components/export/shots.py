"""What every widget shows at every place, without what shows nothing at any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from components.checks import checks
from components.copy import words
from components.export.pieces import deflated_size, pack_columns
from components.export.places import Look, Place, looked
from components.frame import legend, selected
from components.in_words import in_words
from components.panel import Panel, Probe, View
from components.panels import CHAT, INSIDE, TOKEN
from components.status import failure
from components.status import stations as status_stations
from components.transcript_strip import conversation, timeline
from components.widgets import rail, token_strip
from components.widgets.rail import Station
from engine.experiment import ExperimentError
from engine.refusals import Refused

#: Widgets that wait for a text which only a running page takes.
TYPED = frozenset({"sampling-lookup"})

#: Widgets that invite a person to press a button, until the probe behind it was asked.
ASKED: Mapping[str, tuple[str, ...]] = {
    "without_template": ("prompt-compare",),
    "tokenizers": ("tokens-tokenizers",),
    "padding": ("tensors-padding-note", "tensors-padding-ways", "tensors-padding"),
    "uncached": ("kv-uncached",),
    "parity": ("run-parity",),
    "norms": ("residual-positions-note", "residual-positions", "residual-positions-map"),
    "attention_matrix": ("attention-matrix-note", "attention-matrix"),
    "lens_map": ("lens-map-note", "lens-map"),
    "cold_turn": ("turns-cold",),
    "time_in_prompt": ("turns-time",),
}

#: Of the panels that look inside the model, those that every page has where they were recorded.
ESSENTIAL = frozenset({"attention", "lens"})


@dataclass
class Shots:
    """Values by widget: one a place and head, the heads of a place side by side."""

    panels: list[Panel]  # those that show something somewhere
    values: dict[str, list[Any]] = field(default_factory=dict)


@dataclass
class _Listening:
    """A probe that notes whether it was asked, and whether it ever answered."""

    probe: Probe | None = None
    asked: bool = False
    answered: bool = False

    def __call__(self, name: str, **arguments: Any) -> Any:
        assert self.probe is not None
        self.asked = True
        found = self.probe(name, **arguments)
        self.answered = True
        return found


def shoot(
    look: Look,
    places: Sequence[Place],
    heads: Sequence[tuple[int, int]],
    widgets: Mapping[str, Sequence[str]],
    *,
    room: float,
) -> Shots:
    """All values; `widgets` are the ids of each panel's widgets by the panel's station.

    Panels beyond the essential ones come in the rail's order, as long as all take at most `room` bytes deflated.
    """
    views = [looked(look, place, head) for place in places for head in heads]
    wanted = [*TOKEN, *INSIDE, *_of_the_chat(views)]
    drawn = {}
    for panel in sorted(wanted, key=lambda one: one in INSIDE and one.STATION not in ESSENTIAL):
        every = 1 if panel in INSIDE else len(heads)  # the others know no head
        columns = _panel(panel, views[::every], widgets[panel.STATION])
        if columns is None:
            continue
        room -= deflated_size(pack_columns(columns))
        if room > 0 or panel not in INSIDE or panel.STATION in ESSENTIAL:
            drawn[panel.STATION] = {name: [one for one in all_ for _ in range(every)] for name, all_ in columns.items()}
    shots = Shots([panel for panel in wanted if panel.STATION in drawn])
    for panel in shots.panels:
        shots.values |= drawn[panel.STATION]
    # After the panels: what their probes give is at hand then for the rail and the checks.
    for view in views:
        for name, value in _around(view, shots.panels).items():
            shots.values.setdefault(name, []).append(value)
    return shots


def _of_the_chat(views: Sequence[View]) -> list[Panel]:
    """The panels of a chat that have something to tell of this one."""
    trace = views[-1].trace
    assert trace is not None
    told = {"turns": trace.turns > 1, "tools": bool(trace.experiment.tools)}
    return [panel for panel in CHAT if told.get(panel.STATION)]


def _panel(panel: Panel, views: Sequence[View], widgets: Sequence[str]) -> dict[str, list[Any]] | None:
    """The values of a panel's widgets at every view, and its reason; None where it has only reasons.

    A panel whose probes never answer is drawn as where no model is loaded.
    """
    listening = _Listening()
    drawn = [_draw(panel, view, listening, widgets) for view in views]
    if listening.asked and not listening.answered:
        drawn = [_draw(panel, replace(view, probe=None), None, widgets) for view in views]
    if all(f"{panel.STATION}-reason" in one for one in drawn):
        return None
    names = [name for name in (*widgets, f"{panel.STATION}-reason") if name not in TYPED]
    waiting = [_waiting(view) for view in views]
    columns = {
        name: [None if name in hidden else one.get(name) for one, hidden in zip(drawn, waiting, strict=True)]
        for name in names
    }
    return {name: column for name, column in columns.items() if any(value is not None for value in column)}


def _waiting(view: View) -> set[str]:
    """Widgets that would invite a person to press a button, which the file does not have."""
    return {widget for probe, widgets in ASKED.items() if probe not in view.results for widget in widgets}


def _draw(panel: Panel, view: View, listening: _Listening | None, widgets: Sequence[str]) -> dict[str, Any]:
    if listening is not None and view.probe is not None:
        listening.probe = view.probe
        view = replace(view, probe=listening)
    try:
        reason = panel.unavailable(view)
        if reason is None:
            return dict(zip(widgets, panel.render(view), strict=True))
    except (ExperimentError, Refused) as refused:
        reason = in_words(refused)
    return {f"{panel.STATION}-reason": rail.value([Station("", "", reason)])}


def _around(view: View, panels: Sequence[Panel]) -> dict[str, Any]:
    say = words("page")
    groups = ((say.text("rail_inside"), INSIDE), (say.text("rail_chat"), CHAT))
    more = [(label, _stations(view, [one for one in group if one in panels])) for label, group in groups]
    trouble = failure(view)
    return {
        "rail": rail.value(
            _stations(view, [one for one in TOKEN if one in panels]), more=[group for group in more if group[1]]
        ),
        "notice": rail.value([Station("trouble", "", trouble, "", "warn")]) if trouble else None,
        "conversation": token_strip.value(conversation(view), selected=selected(view)),
        "timeline": token_strip.value(timeline(view), selected=selected(view), legend=legend(view)),
        "status": rail.value(status_stations(view) + checks(view)),
    }


def _stations(view: View, panels: Sequence[Panel]) -> list[Station]:
    return [station for panel in panels for station in panel.stations(view)]
