"""What a panel shows, as tests want to look at it."""

from typing import Any

from components.panel import View
from components.widgets.host import read

__all__ = ["read", "station"]


def station(panel: Any, view: View) -> tuple[str, str]:
    """Result and note of a panel that has one station."""
    (only,) = panel.stations(view)
    assert only.id == panel.STATION
    return only.result, only.note
