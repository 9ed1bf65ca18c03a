"""The instrument's layout is one that plotly knows, changed key by key."""

import plotly.graph_objects as go

from components.drawing import LAYOUT, drawing


def test_a_drawing_is_the_base_layout_changed_key_by_key():
    trace = {"type": "scatter", "x": [1], "y": [2]}
    made = drawing(200, [trace], margin={"l": 90}, xaxis={"title": {"text": "step"}}, shapes=[{"type": "line"}])
    same = go.Figure(layout={"height": 200, **LAYOUT})
    same.update_layout(margin={"l": 90}, xaxis={"title": {"text": "step"}}, shapes=[{"type": "line"}])
    layout = same.to_plotly_json()["layout"]
    layout.pop("template")  # the library's default look
    assert made["layout"] == layout
    assert made["data"] == [trace]


def test_one_drawing_leaves_the_next_as_it_was():
    drawing(200, [], margin={"l": 90})
    assert drawing(200, [])["layout"]["margin"] == LAYOUT["margin"] != {"l": 90}
