"""What a panel shows, as tests want to look at it."""

import json
from collections.abc import Mapping
from typing import Any

from components.panel import View
from components.widgets.host import read

__all__ = ["read", "read_figure", "station"]


def station(panel: Any, view: View) -> tuple[str, str]:
    """Result and note of a panel that has one station."""
    (only,) = panel.stations(view)
    assert only.id == panel.STATION
    return only.result, only.note


def read_figure(value: Mapping[str, Any]) -> dict[str, Any]:
    """The figure that a chart's value draws, as {"data", "layout"}: what the browser makes of it."""
    layout = {key: json.loads(part) for key, part in value["layout"].items()}
    return {"data": _joined(value["traces"]), "layout": layout | {"annotations": _joined(value["annotations"])}}


def _joined(text: str) -> list[dict[str, Any]]:
    return [{**run["shared"], **mark} for run in json.loads(text) for mark in run["marks"]]
