"""Figures that belong to the instrument: its fonts, thin grid and tight margins, as plain data.

Plotly's own classes check each property they are given, which takes about as long as a decode step. Tests build them
from these dicts, so the properties are checked there. Colours are custom properties of the style sheet, resolved by
the chart host in the theme of the moment.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Drawing = dict[str, Any]

MONO = 'ui-monospace, "JetBrains Mono", "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace'
SANS = 'Inter, system-ui, "Segoe UI", sans-serif'
AXIS: dict[str, Any] = {
    "gridcolor": "var(--line)",
    "linecolor": "var(--line)",
    "gridwidth": 1,
    "zeroline": False,
    "tickcolor": "var(--line)",
    "tickfont": {"color": "var(--dim)", "size": 11, "family": MONO},
    "title": {"font": {"color": "var(--dim)", "size": 11}, "standoff": 6},
    "automargin": True,
}

LAYOUT: dict[str, Any] = {
    "margin": {"l": 44, "r": 12, "t": 10, "b": 34},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": MONO, "size": 12, "color": "var(--ink)"},
    "xaxis": AXIS,
    "yaxis": AXIS,
    "hoverlabel": {
        "bgcolor": "var(--pane)",
        "bordercolor": "var(--faint)",
        "font": {"family": MONO, "size": 12, "color": "var(--ink)"},
    },
    "hovermode": "closest",
    "dragmode": "zoom",
    "showlegend": False,
    "legend": {
        "orientation": "h",
        "x": 0,
        "y": 1.02,
        "yanchor": "bottom",
        "font": {"size": 11, "color": "var(--dim)"},
        "bgcolor": "rgba(0,0,0,0)",
    },
    "bargap": 0.25,
    "uirevision": "keep",
}


def drawing(height: int, traces: Sequence[Mapping[str, Any]], **layout: Any) -> Drawing:
    """A figure as {"data": …, "layout": …}: the instrument's own layout, changed key by key where `layout` says so."""
    return {"data": list(traces), "layout": _merged(LAYOUT, {"height": height, **layout})}


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(base[key], value) if isinstance(value, Mapping) and isinstance(base.get(key), Mapping) else value
        for key, value in changes.items()
    }
    return {**base, **both}
