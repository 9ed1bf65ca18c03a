"""Figures as plain data, for charts that are drawn anew at every token.

Plotly's own classes check each property they are given, which takes about as long as a decode step. Tests build them
from these dicts, so the properties are checked there.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from components.figures import base_figure

Drawing = dict[str, Any]


def drawing(height: int, traces: Sequence[Mapping[str, Any]], **layout: Any) -> Drawing:
    """A figure as {"data": …, "layout": …}: the instrument's own layout, changed key by key where `layout` says so."""
    return {"data": list(traces), "layout": _merged(_base(), {"height": height, **layout})}


@cache
def _base() -> dict[str, Any]:
    layout: dict[str, Any] = base_figure(100).layout.to_plotly_json()
    layout.pop("template", None)
    return layout


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(base[key], value) if isinstance(value, Mapping) and isinstance(base.get(key), Mapping) else value
        for key, value in changes.items()
    }
    return {**base, **both}
