"""The names under which a note may call a panel: the panel's own, and those of its stations on the rail."""

from functools import cache

from components.export.layout import layouts, widget_ids
from components.panel import Panel
from components.panels import PANELS
from components.residual import panel as residual
from components.sampling import panel as sampling
from components.stopping import panel as stopping

#: Stations of the rail whose panel has another name.
_SHARED: dict[str, Panel] = {
    "logits": sampling,
    "processors": sampling,
    "draw": sampling,
    "stop": stopping,
    "text": stopping,
    "layers": residual,
}

PANEL_OF: dict[str, Panel] = {panel.STATION: panel for panel in PANELS} | _SHARED

#: Buttons that a note cannot press: what they do begins another run.
NOT_PRESSED = frozenset({"take_branch", "chances", "without_template"})


def station_of(name: str) -> str:
    """The station of the rail that a name stands for: the first of a panel with several."""
    return next((station for station, panel in _SHARED.items() if panel.STATION == name), name)


def buttons(panel: Panel) -> tuple[str, ...]:
    """The buttons of a panel that a note may press."""
    return tuple(name for name in panel.CONTROLS.asks if name not in NOT_PRESSED)


@cache
def parts() -> dict[str, list[str]]:
    """The parts that a note may point at, by each name of their panel: what the panel shows, from its top.

    What is folded away, at the end of a panel, is none of them.
    """
    found = {
        station: widget_ids([part for part in one["parts"] if "fold" not in part])
        for station, one in layouts(PANELS).items()
    }
    return {name: found[panel.STATION] for name, panel in PANEL_OF.items()}
