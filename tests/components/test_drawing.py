import plotly.graph_objects as go

from components.drawing import drawing
from components.figures import base_figure


def test_a_drawing_is_the_base_figure_changed_key_by_key():
    trace = {"type": "scatter", "x": [1], "y": [2]}
    made = go.Figure(
        drawing(200, [trace], margin={"l": 90}, xaxis={"title": {"text": "step"}}, shapes=[{"type": "line"}])
    )
    same = base_figure(200, margin={"l": 90}, xaxis={"title": {"text": "step"}}, shapes=[{"type": "line"}])
    same.add_trace(trace)
    layouts = [figure.to_plotly_json()["layout"] for figure in (made, same)]
    for layout in layouts:
        layout.pop("template")  # the library's default look, which a chart host leaves out
    assert layouts[0] == layouts[1]
    assert list(made.data) == list(same.data)


def test_one_drawing_leaves_the_next_as_it_was():
    drawing(200, [], margin={"l": 90})
    assert drawing(200, [])["layout"]["margin"]["l"] == base_figure(200).layout.margin.l
