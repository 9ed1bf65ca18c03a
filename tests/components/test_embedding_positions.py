"""How the embedding panel shows positions: angles, equal scores at equal distance, learned rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from transformers import SmolLM3Config

from components.embedding import angles
from components.inside import cursor_at
from tests.components.embedding_visit import Looked, cells, drawn, looks, said
from tests.components.reading import read, read_figure
from tests.engine.probes.tables import of_config
from tests.engine.probes.test_rotary import SMALL

Look = Callable[[str], Looked]


@pytest.fixture(scope="module")
def look() -> Iterator[Look]:
    yield from looks()


def test_the_angles_are_the_probe_s(look: Look) -> None:
    looked = look("llama")
    view = looked.at()
    shown, found = drawn(view), view.results["rotary"]
    (turning,) = found.turnings
    figure = read_figure(shown["wavelengths"])
    np.testing.assert_allclose(figure["data"][0]["y"], turning.wavelengths, rtol=1e-4)
    assert figure["data"][-1]["y"] == [view.facts.context] * 2
    lines = cells(shown["wavelengths"]["numbers"])
    assert [line[1] for line in lines] == ["0, 4", "1, 5", "2, 6", "3, 7"]
    assert [line[4] for line in lines] == [
        f"{found.position * 10000 ** (-pair / 4) / (2 * np.pi):,.3f}" for pair in range(4)
    ]
    assert [line[5] for line in lines] == [f"{np.degrees(angle):+.1f}°" for angle in turning.here]
    picture = read(shown["angles"])
    assert (picture["rows"], picture["columns"]) == (4, 256)
    assert picture["selected"] == [0, found.position]
    for at, key in enumerate(picture["column_keys"]):
        assert looked.at(key["position"]).fed_position == at if at <= found.position else key == {}
    note = said(shown["rotary_note"])
    assert "Instead each layer turns its queries and keys: the 8 dimensions that turn (of 8 in a head) form 4" in note
    go.Figure(figure)


def test_layers_that_turn_in_two_ways_are_both_shown(look: Look) -> None:
    looked = look("mixed")
    view = looked.at(layer=1)
    shown = drawn(view)
    note = said(shown["rotary_note"])
    assert "sliding attention (layers 0, 2): θ = 10,000; full attention (layers 1, 3): θ = 1,000,000" in note
    assert "that of layer 1, full attention" in note
    names = [trace["name"] for trace in read_figure(shown["wavelengths"])["data"]]
    assert names[:2] == ["sliding attention", "full attention"]
    local = read(drawn(looked.at(layer=2))["angles"])
    assert local["png"] != read(shown["angles"])["png"]
    assert "Scaled by 5.657 on the way in" in said(shown["row"])
    assert "square root of the hidden size, 32" in said(shown["row"])
    assert "Tied: one table, read twice" in said(shown["row"])
    assert "worked out from the dot product of the stream after the final norm" in said(shown["row"])


def test_a_layer_that_does_not_turn_has_no_picture_and_is_not_counted() -> None:
    looked = Looked(of_config(SmolLM3Config(**SMALL, no_rope_layers=[1, 0])))
    turning, still = (drawn(looked.at(layer=layer)) for layer in (0, 1))
    looked.runtime.shut_down()
    assert still["angles"] is None
    assert (read(turning["angles"])["rows"], read(turning["angles"])["columns"]) == (4, 256)
    for shown in (turning, still):
        assert "Instead 1 of 2 layers turns its queries and keys: the 8 dimensions" in said(shown["rotary_note"])
        assert shown["wavelengths"] is not None
    note = said(still["rotary_note"])
    assert "Layer 1 does not turn" in note and "Layers that turn: 0;" in note and "How to read the picture" not in note
    assert "does not turn" not in said(turning["rotary_note"])


def test_dimensions_of_a_pair() -> None:
    def pairs(apart: int | None) -> list[str]:
        turning: Any = Plain(apart=apart)
        return [angles.dimensions(turning, pair) for pair in range(2)]

    assert pairs(8) == ["0, 8", "1, 9"]
    assert pairs(1) == ["0, 1", "2, 3"]
    assert pairs(None) == ["–", "–"]


class Plain:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def test_equal_distances_are_a_row_of_equal_scores(look: Look) -> None:
    view = look("llama").at(layer=1, head=3)
    shown, found = drawn(view), view.results["relative_phase"]
    assert (found.layer, found.head, found.kv_head) == (1, 3, 1)
    lines = cells(shown["phase"])
    assert [line[0] for line in lines] == [str(distance) for distance in found.distances]
    for line, scores in zip(lines, found.scores, strict=True):
        assert line[1:-1] == [f"{score:.4f}" for score in scores]
        assert line[-1] == f"{np.ptp(scores):.1e}"
    assert read(shown["phase"])["rows"][1][0][1] == "accent"
    note = said(shown["phase_note"])
    assert f"{found.within:.1e}" in note and f"{found.between:.2f}" in note and f"{found.raw:.5f}" in note


def test_a_model_with_learned_positions_shows_them_and_says_that_nothing_turns(look: Look) -> None:
    looked = look("gpt2")
    view = looked.at(3)
    shown, found = drawn(view), view.results["positions"]
    assert "learned a vector for each position" in said(shown["rotary_note"])
    assert [shown[name] for name in ("wavelengths", "angles", "phase")] == [None] * 3
    line, here = read_figure(shown["learned"])["data"]
    np.testing.assert_allclose(line["y"], found.norms, rtol=1e-3)
    assert (here["x"], here["y"]) == ([3], [pytest.approx(found.norm, rel=1e-3)])
    picture = read(shown["learned_map"])
    assert (picture["rows"], picture["columns"]) == found.cosines.shape
    at = found.places.tolist().index(3)
    assert picture["selected"] == [at, at]
    assert picture["column_keys"][at] == {"position": cursor_at(view, 3)}
    fed = [place for place, key in zip(found.places.tolist(), picture["column_keys"], strict=True) if key]
    assert fed == [place for place in found.places.tolist() if place <= looked.at().fed_position]  # type: ignore[operator]
    assert f"{found.sum_norm:.2f}" in said(shown["learned_note"])
    assert "plus the row of its position" in said(shown["row"])
    assert "no learned positions" in said(drawn(look("llama").at())["learned_note"])
    go.Figure(read_figure(shown["learned"]))
