"""Widget values as tests want to look at them."""

import json
from typing import Any

from components.panel import View


def read(value: Any) -> Any:
    """The value with the items of its lists decoded: each travels as one JSON string."""
    if isinstance(value, dict):
        return {name: read(part) for name, part in value.items()}
    if isinstance(value, list):
        return [json.loads(entry) if isinstance(entry, str) else entry for entry in value]
    return value


def station(panel: Any, view: View) -> tuple[str, str]:
    """Result and note of a panel that has one station."""
    (only,) = panel.stations(view)
    assert only.id == panel.STATION
    return only.result, only.note
