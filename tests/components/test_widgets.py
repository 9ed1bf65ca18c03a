"""The values of the widgets: what travels, what is refused, and how big it gets."""

import base64
import io
import json
import re
import time

import numpy as np
import pytest
from PIL import Image

from components.drawing import drawing
from components.theme import theme
from components.widgets import chart_host, heatmap, host, rail, table, token_strip
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Chip, Group
from tests.components.reading import read_figure


def pixels(value: dict) -> np.ndarray:
    data = base64.b64decode(value["png"].split(",", 1)[1])
    return np.asarray(Image.open(io.BytesIO(data)).convert("L"))


def test_rail_items():
    value = host.read(rail.value([Station("draw", "Draw", '"!"', "u .794", "ok", "race")], active="draw"))
    assert value == {"stations": [["draw", "Draw", '"!"', "u .794", "ok", "race"]], "more": [], "active": "draw"}


def test_rail_groups():
    value = host.read(rail.value([], more=[("inside", [Station("lens", "Lens", "31")]), ("chat", [])]))
    assert value["more"] == [
        {"label": "inside", "stations": [["lens", "Lens", "31", "", "", ""]]},
        {"label": "chat", "stations": []},
    ]


def test_strip_flattens_groups_and_keeps_their_order():
    groups = [Group([Chip("a", 0), Chip("b", 1)], label="system", role="system", as_text=True), Group([Chip("c", 2)])]
    value = host.read(token_strip.value(groups, selected=1))
    assert value["groups"] == [["system", "system", "", True], ["", "", "", False]]
    assert [chip[:3] for chip in value["chips"]] == [[0, "a", 0], [0, "b", 1], [1, "c", 2]]


def test_one_more_token_only_appends_to_the_last_block():
    def blocks(count: int) -> list[str]:
        return token_strip.value([Group([Chip("a\n", place) for place in range(count)])])["chips"]

    before, after = blocks(70), blocks(71)
    assert [len(block.split("\n")) for block in after] == [32, 32, 7]
    assert after[:2] == before[:2]
    assert after[2].startswith(before[2])


def test_table_cells_travel_as_short_as_they_can():
    value = table.value([Column("n", "right")], [["1"], [Cell("2")], [Cell("3", "cut", 0.5)]], key=[(0, 1), "x", None])
    read = host.read(value)
    assert read["rows"] == [["1"], ["2"], [["3", "cut", 0.5, ""]]]
    assert read["keys"] == [[0, 1], "x", None]


@pytest.mark.parametrize(
    ("rows", "key", "message"),
    [
        ([["a", "b"]], None, "every row needs 1 cells"),
        ([["a"]], [], "0 keys for 1 rows"),
        ([[Cell("a", bar=1.5)]], None, "a bar of 1.5"),
        ([[Cell("a", bar=float("nan"))]], None, "a bar of nan"),
    ],
)
def test_table_refuses_what_does_not_fit(rows, key, message):
    with pytest.raises(ValueError, match=message):
        table.value([Column("a")], rows, key=key)


def test_a_lone_surrogate_travels_as_its_escape():
    value = rail.value([Station("a", "\ud83d", "", "")])
    value["stations"][0].encode("utf-8")
    assert json.loads(value["stations"][0])[1] == "\ud83d"


def test_a_chart_carries_texts_as_they_are():
    figure = drawing(200, [{"type": "scatter", "x": [0, 1, 2], "y": [1.0, None, 3.0], "name": "</script>"}])
    drawn = read_figure(chart_host.value(figure, label="l", height=200))
    assert drawn["data"] == figure["data"]


def test_what_all_marks_share_travels_once_and_the_figure_is_the_same():
    figure = {
        "data": [{"type": "scatter", "mode": "lines", "x": [0, 1], "y": [n, n]} for n in range(3)],
        "layout": {"annotations": [{"text": "a", "x": 0}, {"text": "a", "y": 1}]},
    }
    value = chart_host.value(figure, label="l", height=200)
    assert value["traces"].count("scatter") == 1
    assert read_figure(value) == {"data": figure["data"], "layout": {**figure["layout"], "height": 200}}
    assert read_figure(chart_host.value({"data": [], "layout": {}}, label="l", height=9))["data"] == []


def test_heatmap_greys_and_blanks():
    matrix = np.array([[0.0, 1.0, np.nan], [0.5, -3.0, 9.0]])
    value = heatmap.value(matrix, x=["a", "b", "c"], y=["d", "e"], label="l", low=0, high=1, selected=(1, 0))
    assert pixels(value).tolist() == [[1, 255, 0], [128, 1, 255]]
    assert value["step"] == pytest.approx(1 / 254)
    assert value["selected"] == [1, 0]


def test_heatmap_cells_may_carry_texts_and_columns_keys():
    matrix, texts = np.zeros((2, 2)), [["a", "</script>\nb"], ["${x}", ""]]
    keys = [{"position": 4}, {"position": 5}]
    value = heatmap.value(matrix, x=["x", "y"], y=["u", "v"], label="l", low=0, high=1, texts=texts, column_keys=keys)
    assert (host.read(value)["texts"], host.read(value)["column_keys"]) == (texts, keys)
    for wrong in ({"texts": [["a", "b"]]}, {"texts": [["a"], ["b"]]}, {"column_keys": [1]}):
        with pytest.raises(ValueError, match=r"the texts do not fill|1 keys for 2"):
            heatmap.value(matrix, x=["x", "y"], y=["u", "v"], label="l", low=0, high=1, **wrong)


@pytest.mark.parametrize("kind", ["attention", "noise"])
def test_a_big_matrix_is_small_and_fast(kind):
    random = np.random.default_rng(0)
    noise = random.random((1000, 1000))
    weights = np.where(np.tri(1000), random.dirichlet(np.full(1000, 0.05), 1000), np.nan)
    matrix = noise if kind == "noise" else weights / np.nanmax(weights)
    labels = [str(number) for number in range(1000)]
    begun = time.process_time()
    value = heatmap.value(matrix, x=labels, y=labels, label="l", low=0, high=1)
    assert time.process_time() - begun < 0.5
    assert len(value["png"]) <= 400_000
    shown = (pixels(value) - 1.0) / 254
    assert np.nanmax(np.abs(np.where(np.isnan(matrix), np.nan, shown) - matrix)) <= value["step"] / 2 + 1e-6


@pytest.mark.parametrize(
    ("x", "high", "message"), [(["a"], 1, "1 × 1 labels"), (["a", "b"], 0, "range 0 to 0"), (["a", "b"], -1, "range")]
)
def test_heatmap_refuses_what_does_not_fit(x, high, message):
    with pytest.raises(ValueError, match=message):
        heatmap.value(np.zeros((1, 2)), x=x, y=["r"], label="l", low=0, high=high)


def test_nothing_is_fetched_from_another_host():
    text = host.head() + theme()._get_theme_css().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:", text)
    assert theme()._stylesheets == []


def test_the_scripts_never_turn_text_into_markup_or_code():
    assert not re.search(r"\.(inner|outer)HTML|insertAdjacentHTML|\beval\(|new Function", host.head())
