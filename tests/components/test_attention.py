"""The station Attention: its numbers are the probe's, on a small random model and on weights made by hand."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from components.attention import heads
from components.attention import panel as attention
from components.attention.moves import HIDDEN, TOP, moves_value
from components.panel import Cursor, View
from components.units import probability_text
from engine.answers.attention import AttentionAt, Moves
from engine.conversation import Conversation
from engine.probes.head_kinds import KINDS, kinds, measure, stack
from engine.probes.table import PROBES
from engine.refusals import Refused
from tests.components.handmade import make_rendered, make_trace, make_view
from tests.components.reading import read, station
from tests.engine.conversations import experiment, finish
from tests.engine.models import WINDOW, tiny

NAMES = ("notes", "figures", "map", "weights-note", "weights", "kinds", "moves", "matrix-note", "matrix")


def conversation(name: str = "llama", **fields: Any) -> Conversation:
    made = Conversation(tiny(name), experiment(**{"prompt": "the cat sat on the mat and then the dog sat"} | fields))
    finish(made)
    return made


def view_of(made: Conversation, results: dict[str, Any] | None = None, **cursor: Any) -> View:
    def probe(name: str, **arguments: Any) -> Any:
        return PROBES[name](made, **arguments)

    return View(made.loaded.facts, made.trace, Cursor(**cursor), probe=probe, results=results or {})


def shown(view: View) -> dict[str, Any]:
    return dict(zip(NAMES, [value and read(value) for value in attention.render(view)], strict=True))


def texts(value: dict[str, Any]) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in value["rows"]]


def remarks(value: dict[str, Any]) -> str:
    return " ".join(f"{label} {note}" for label, _, note, _ in value["groups"])


def seen_by_hand(weights: list[list[float]], hidden: dict[int, str] | None = None, **changes: Any) -> AttentionAt:
    """One layer whose heads have these weights; scores and value lengths count up from 0 by position."""
    rows = np.array(weights, np.float32)
    count = rows.shape[1]
    figures = stack([measure(rows, first=0, visible=count)])
    scores = np.arange(count, dtype=np.float32)
    reasons = tuple((hidden or {}).get(index) for index in range(count))
    moves = Moves(
        raw=scores, scaled=scores / 2, masked=np.where([r is None for r in reasons], scores / 2, -np.inf),
        hidden_by=reasons, weights=rows[0], value_norms=scores + 1, mixed_norm=1.5, scaling=0.5, softcap=None,
    )  # fmt: skip
    made = AttentionAt(
        turn=0, position=count - 1, layer=0, head=0, first=0, later=0, weights=rows, figures=figures,
        kinds=tuple(tuple(KINDS[i] for i in row) for row in kinds(figures)), moves=moves, kv_head=0, group=(0, 1),
        window=None,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def test_every_number_is_the_probe_s():
    made = conversation()
    view = view_of(made, layer=1, head=2, position=made.trace.steps(0)[3].position)
    values = shown(view)
    probe = PROBES["attention"](made, layer=1, head=2, position=made.trace.steps(0)[3].position - 1)
    for head, row in enumerate(texts(values["kinds"])):
        figures = probe.figures
        assert row[:2] == [str(head), str(head // 2)]
        assert row[3:8] == [
            probability_text(float(one[1, head]))
            for one in (figures.evenness, figures.on_self, figures.on_first, figures.on_previous, figures.elsewhere)
        ]
        assert row[8] == f"{figures.entropy[1, head]:.2f}"
    assert values["kinds"]["selected"] == 2
    tokens = [*made.trace.rendered(0).token_bytes, *(step.token_bytes for step in made.trace.steps(0))]
    top = texts(values["moves"])[:TOP]
    assert [float(row[5]) for row in top] == sorted((float(row[5]) for row in top), reverse=True)
    for row in top:
        at, moves = int(row[0]), probe.moves
        assert row[1] == tokens[at].decode().replace(" ", "␣").replace("\n", "⏎")
        assert row[2:5] == [f"{moves.raw[at]:.2f}", f"{moves.scaled[at]:.2f}", f"{moves.masked[at]:.2f}"]
        assert row[5] == probability_text(float(moves.weights[at]))
        assert row[7] == f"{moves.weights[at] * moves.value_norms[at]:.3f}"
    rest = next(row for row in texts(values["moves"]) if row[1].endswith(" others"))
    assert rest[5] == probability_text(1 - float(np.sort(probe.moves.weights)[-TOP:].sum()))
    assert texts(values["moves"])[-1][5] == "1.0000"
    assert f"from position {probe.position}" in remarks(values["notes"])


def test_where_one_position_is_seen_nothing_is_said_of_the_most_entropy_that_is_possible():
    made = conversation()
    first, second = (remarks(shown(view_of(made, position=at))["notes"]) for at in (0, 1))
    assert "the only one that can be seen from here. Kind: itself. Entropy 0.00 nats." in first
    assert "of the most that is possible here" not in first
    assert "of the most that is possible here" in second
    assert texts(shown(view_of(made, position=0))["kinds"])[0][8] == "0.00"


def test_the_position_shown_is_the_one_that_was_fed():
    made = conversation()
    step = made.trace.steps(0)[2]
    assert view_of(made, position=step.position).fed_position == step.position - 1
    assert view_of(made, position=4).fed_position == 4
    assert view_of(made).fed_position == made.trace.steps(0)[-1].position - 1
    assert make_view(make_trace((), stop=False)).fed_position == 20


@pytest.mark.parametrize("figure", ["on_first", "on_self", "on_previous", "entropy"])
def test_the_map_shows_the_chosen_figure_and_a_cell_is_a_layer_and_a_head(figure):
    made = conversation()
    values = shown(view_of(made, layer=1, head=3, figure=figure))
    heat = values["map"]
    assert (heat["rows"], heat["columns"], heat["selected"], heat["band"]) == (4, 2, [3, 1], 2)
    assert heat["keys"] == {"head": ["row", 0], "layer": ["column", 0]}
    assert heat["y"] == ["KV 0 · head 0", "KV 0 · head 1", "KV 1 · head 2", "KV 1 · head 3"]
    assert values["figures"]["keys"][values["figures"]["selected"]] == {"figure": figure}
    assert shown(view_of(conversation("full")))["map"]["y"][1] == "head 1"


def test_the_matrix_comes_on_demand_and_follows_the_head():
    made = conversation()
    empty = shown(view_of(made))
    assert empty["matrix"] is None
    assert "Press the button" in remarks(empty["matrix-note"])
    results = {"attention_matrix": PROBES["attention_matrix"](made, layer=1, head=0)}
    values = shown(view_of(made, results, layer=1, head=3))
    assert "Layer 1, head 3" in remarks(values["matrix-note"])
    row, column = values["matrix"]["selected"]
    expected = PROBES["attention_matrix"](made, layer=1, head=3)
    assert row == expected.last
    assert column == int(expected.weights[row].argmax())
    assert values["matrix"]["keys"] == {"fed": ["row", 0]}
    other = remarks(shown(view_of(made, results, layer=0))["matrix-note"])
    assert "Layer 1, head 0" in other
    assert "again for layer 0" in other


def test_a_capped_matrix_says_so():
    made = conversation()
    whole = PROBES["attention_matrix"](made, layer=0, head=0)
    capped = dataclasses.replace(
        whole, first=10, weights=whole.weights[10:, 10:], outside=whole.weights[10:, :10].sum(-1)
    )
    values = shown(view_of(made, {"attention_matrix": capped}))
    assert f"the newest {len(whole.weights) - 10} of {len(whole.weights)} positions" in remarks(values["matrix-note"])
    assert values["matrix"]["keys"] == {"fed": ["row", 10]}
    assert values["matrix"]["y"][0].startswith("10 ")


def test_both_masks_and_the_window_are_said():
    weights = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.75]] * 2
    hidden = {0: "window", 1: "window", 2: "padding", 3: "padding", 4: "padding"}
    seen = seen_by_hand(weights, hidden, later=3, first=0)
    rows = texts(read(moves_value(seen, [b"a"] * 10)))
    assert [row[4] for row in rows] == [
        "3.00", "2.50", "−∞ padding", "−∞ padding", "−∞ padding", "−∞ window", "−∞ causal", "",
    ]  # fmt: skip
    assert [row[1] for row in rows[2 + HIDDEN :]] == ["2 more, hidden", "3 later", "sum"]
    assert rows[2][2:4] == ["4.00", "2.00"]
    assert rows[2][5] == ".000"
    pixels = read(heads.weights_value(seen, [b"a"] * 10))
    assert pixels["selected"] == [0, 6]


def test_a_sliding_layer_says_its_window():
    values = shown(view_of(conversation("sliding")))
    assert f"the newest {WINDOW} positions" in remarks(values["notes"])
    assert any("window" in row[4] for row in texts(values["moves"]))


def test_a_long_context_shows_the_first_and_the_newest_positions_and_says_so(monkeypatch):
    monkeypatch.setattr(heads, "MAX_COLUMNS", 6)
    values = shown(view_of(conversation()))
    assert values["weights"]["columns"] == 6
    newest = [int(label.split()[0]) for label in values["weights"]["x"]]
    assert newest == [0, *range(newest[-1] - 4, newest[-1] + 1)]
    assert "position 0 and the newest 5" in remarks(values["notes"])


def test_hostile_token_text_is_a_plain_label():
    trace = make_trace()
    seen = seen_by_hand([[0.04] * 25] * 4)
    view = dataclasses.replace(make_view(trace, position=25), probe=lambda name, **arguments: seen)
    values = shown(view)
    assert values["weights"]["x"][10] == "10 ⟨E2⟩⟨91⟩"
    assert values["weights"]["x"][12] == "12 <script>alert(1)</script>"
    assert values["weights"]["x"][13] == "13 ${x}"


def test_what_the_engine_refuses_becomes_words():
    def refuse(name: str, **arguments: Any) -> Any:
        raise Refused("layer 0 has no attention that can be found")

    values = shown(dataclasses.replace(make_view(), probe=refuse))
    assert "layer 0 has no attention" in remarks(values["notes"])
    assert [values[name] for name in NAMES[1:]] == [None] * 8


def test_a_matrix_that_a_record_does_not_hold_hides_nothing_else():
    made = conversation()
    kept = PROBES["attention_matrix"](made, layer=1, head=0)

    def recorded(name: str, **arguments: Any) -> Any:
        if name == "attention_matrix":
            raise Refused("not recorded")
        return PROBES[name](made, **arguments)

    view = view_of(made, {"attention_matrix": kept}, layer=1, head=3)
    values = shown(dataclasses.replace(view, probe=recorded))
    alone = shown(view_of(made, layer=1, head=3))
    assert all(values[name] == alone[name] is not None for name in NAMES[:-2])
    assert "head 0" in remarks(values["matrix-note"])
    assert values["matrix"] is not None


def test_the_station_and_when_there_is_nothing_to_show():
    view = dataclasses.replace(make_view(layer=1, head=3), probe=lambda name, **arguments: None)
    assert station(attention, view) == ("4 / 2 heads", "layer 1 · head 3")
    assert attention.unavailable(view) is None
    assert "no model is loaded" in attention.unavailable(make_view())
    only = dataclasses.replace(make_trace(), events=(make_rendered(),))
    assert "Press Step" in attention.unavailable(dataclasses.replace(view, trace=only))
    assert station(attention, view_of(conversation("full")))[0] == "4 heads"
