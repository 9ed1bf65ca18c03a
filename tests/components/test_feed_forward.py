"""The feed-forward panel shows its probe's numbers, leads to every layer, and keeps hostile tokens as text."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from components.feed_forward import panel
from components.feed_forward.neurons import neurons_value, notes_value
from components.feed_forward.sparsity import layers_figure, layers_numbers
from components.visible import visible_bytes
from engine.model import LoadedModel
from engine.refusals import Refused
from tests.components.handmade import make_view
from tests.components.looking import HOSTILE, SHOWN_HOSTILE, Looked, cells, look, notes
from tests.components.reading import read, read_figure, station
from tests.engine.models import tiny


@pytest.fixture(scope="module")
def looked(llama: LoadedModel) -> Iterator[Looked]:
    with look(llama) as looked:
        yield looked


def test_every_number_is_the_probe_s(looked: Looked) -> None:
    view = looked(position=None, layer=1)
    _, remarks, neurons, layers, curve = panel.render(view)
    found = view.results["feed_forward"]
    assert (found.position, found.layer) == (view.fed_position, 1)
    own = found.sparsity
    (few, counted), (target, moved), (_, check) = notes(remarks)
    assert few == f"Layer 1: {own.half} of 64 neurons {'carries' if own.half == 1 else 'carry'} half of the push"
    assert f"{own.positive} of the 64 activations are above 0, and {own.clear} neurons push" in counted
    token = visible_bytes(found.target_bytes)
    assert target == f"{found.target_total:+.2f} on the logit of “{token}”"
    assert found.target_id == view.step.token_id
    assert f"Neuron {found.mover_id} moved it most, by {found.mover_effect:+.2f}" in moved
    assert f"{found.output_norm:,.1f} long; the largest difference" in check
    assert check.endswith(f"{found.max_difference:.1e}.")
    rows = cells(neurons)
    assert len(rows) == 12
    for line, row in enumerate(rows):
        assert row[:3] == [
            str(found.neuron_ids[line]), f"{found.activations[line]:+.2f}", f"{found.pushes[line]:.2f}",
        ]  # fmt: skip
        assert row[3] == f"{found.target_effects[line]:+.2f}"
        for cell, ids in ((row[4], found.raised_ids[line]), (row[5], found.lowered_ids[line])):
            names = [visible_bytes(found.token_bytes[int(i)]) or f"row {int(i)}" for i in ids]
            assert cell.replace("\n", "\u2003").split("\u2003") == names
    shown = read_figure(layers)["data"][0]
    assert shown["y"] == [round(100 * one.half / one.neurons, 3) for one in found.by_layer]
    line = read_figure(curve)["data"][0]
    np.testing.assert_allclose(line["y"], found.curve_shares, atol=1e-4)
    assert line["y"][-1] == 1
    for chart in (layers, curve):
        go.Figure(read_figure(chart))


def test_a_click_on_a_layer_leads_there(looked: Looked) -> None:
    view = looked(position=None, layer=0)
    chart = panel.render(view)[3]
    bar = read_figure(chart)["data"][0]
    assert bar["customdata"] == [{"layer": 0}, {"layer": 1}]
    assert bar["marker"]["color"] == ["var(--accent)", "var(--s4)"]
    assert read(chart)["numbers"]["keys"] == [{"layer": 0}, {"layer": 1}]
    looked.desk.select(looked.visit, bar["customdata"][1])
    view = looked()
    _, remarks, *_ = panel.render(view)
    assert notes(remarks)[0][0].startswith("Layer 1: ")
    assert station(panel, view) == (f"{view.results['feed_forward'].sparsity.half} of 64", "half, layer 1")
    assert station(panel, looked(position=1)) == ("64", "neurons a layer")


def test_a_bias_is_told_and_a_last_token_is_a_guess() -> None:
    with look(tiny("gpt2")) as looked:
        view = looked(position=1)
        assert "and the bias give the feed-forward's output" in notes(panel.render(view)[1])[2][1]
        found = view.results["feed_forward"]
    guess = notes(notes_value(dataclasses.replace(found, target_chosen=False)))
    assert "the model's best guess" in guess[1][1]


def test_hostile_tokens_stay_text_and_empty_rows_have_a_name(looked: Looked) -> None:
    panel.render(looked(position=None, layer=0))
    found = looked.visit.results["feed_forward"]
    bad = dataclasses.replace(
        found,
        target_bytes=HOSTILE,
        token_bytes=dict.fromkeys(found.token_bytes, HOSTILE) | {int(found.raised_ids[0, 0]): b""},
    )
    rows = cells(neurons_value(bad))
    assert rows[0][4].startswith(f"row {found.raised_ids[0, 0]}\u2003{SHOWN_HOSTILE}")
    assert SHOWN_HOSTILE in read(neurons_value(bad))["columns"][3][0]
    assert SHOWN_HOSTILE in notes(notes_value(bad))[1][0]


def test_a_layer_without_neurons_leaves_a_gap(looked: Looked) -> None:
    panel.render(looked(position=None, layer=0))
    found = looked.visit.results["feed_forward"]
    mixed = dataclasses.replace(found, by_layer=(found.by_layer[0], None))
    assert layers_figure(mixed, 200)["data"][0]["x"] == [0]
    assert cells(layers_numbers(mixed))[1] == ["1", "no list of neurons", "", ""]


def test_a_refusal_is_said_in_its_place(looked: Looked) -> None:
    def refuse(name: str, **_: Any) -> Any:
        raise Refused("the feed-forward of layer 0 is a mixture of experts")

    where, *others = panel.render(dataclasses.replace(looked(), probe=refuse, results={}))
    assert read(where)["stations"][0][2] == "the feed-forward of layer 0 is a mixture of experts"
    assert others == [None] * 4
    assert "no model is loaded" in str(panel.unavailable(make_view()))
    assert panel.unavailable(looked()) is None
