"""The panel One layer shows what the probe found, number by number, and says what it means."""

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, get_args

import numpy as np
import pytest

from components import checks
from components.copy import words
from components.desk import Desk
from components.layer import panel
from components.layer.figures import difference_text, number_text
from components.panel import OPERATIONS, View
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.probes.by_hand import ACTIVATIONS, Pairs
from engine.refusals import Refused
from engine.runtime import Runtime
from engine.settings import Settings
from tests.components.handmade import make_view
from tests.components.reading import read
from tests.components.test_lens import cells
from tests.engine.models import tiny

FAMILIES = ("llama", "qwen2", "qwen3", "gpt2", "mixed", "capped", "sliding", "fused", "multiplied")


class Visit:
    """A visit of a small model's run of six tokens."""

    def __init__(self, loaded: LoadedModel, **fields: Any) -> None:
        self.runtime = Runtime(loaded, load_catalog(), Settings())
        default = Experiment.model_validate(
            {
                "version": 1,
                "model": loaded.facts.model_id,
                "prompt": "the cat sat on the mat",
                "sampling": {"seed": 1, "min_new_tokens": 6},
                "stop": {"max_new_tokens": 6},
            }
            | fields
        )
        ready: Future[Runtime] = Future()
        ready.set_result(self.runtime)
        self.desk = Desk(ready, default)
        self.visit = self.desk.open("visitor")
        for _ in range(6):
            self.runtime.step("visitor")

    def view(self, **cursor: Any) -> View:
        self.visit.cursor = dataclasses.replace(self.visit.cursor, **cursor)
        return self.desk.view(self.visit)


@pytest.fixture
def open_visit() -> Iterator[Callable[[str], Visit]]:
    opened: list[Visit] = []

    def visit(name: str) -> Visit:
        opened.append(Visit(tiny(name)))
        return opened[-1]

    yield visit
    for one in opened:
        one.runtime.shut_down()


def test_numbers_are_short_and_signed() -> None:
    assert [number_text(value) for value in (-2.4131, 0.0, 1234.5, 2.079e-5)] == ["−2.41", "0", "1.23e+03", "2.08e−05"]
    assert [difference_text(value) for value in (3.2e-7, 0.0, 0.04, 1.0, float("nan"))] == [
        "3e-7", "0", "4e-2", "1e0", "nan",
    ]  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_every_operation_has_its_row(open_visit: Callable[[str], Visit], name: str) -> None:
    view = open_visit(name).view(layer=1, operation="mixed")
    where, verdict, _, strip, operations, first = panel.render(view)
    found = view.results["layer"]
    assert read(where)["stations"][0][2].startswith(f"Position {view.fed_position},")
    rows, say = cells(operations), words("layer")
    assert len(rows) == len(found.operations)
    for row, one in zip(rows, found.operations, strict=True):
        assert row[1] == say.text(f"op_{one.name}")
        assert row[4] == ("–" if one.difference is None else difference_text(one.difference))
        assert row[5:] == [number_text(one.norm), f"{number_text(one.low)} … {number_text(one.high)}"]
    assert [key["operation"] for key in read(operations)["keys"]] == [one.name for one in found.operations]
    assert {one.name for one in found.operations} <= set(OPERATIONS)
    mixed = [one.name for one in found.operations].index("mixed")
    assert operations["selected"] == mixed
    for line, numbers in zip(cells(first), (found.operations[mixed].ours, found.operations[mixed].model), strict=True):
        shown = [float(cell.replace("−", "-")) for cell in line[1:]]
        np.testing.assert_allclose(shown, numbers, rtol=1e-4)
    sentence, text = read(verdict)["groups"][0][0], read(verdict)["groups"][0][2]
    assert sentence.startswith(f"{len(rows)} operations recomputed")
    assert f"computed is {difference_text(found.largest)}." in sentence
    assert f"{sum(one.difference is not None for one in found.operations)} of them" in text
    assert (strip["rows"], strip["columns"]) == (1, view.facts.layers)
    assert (strip["selected"], strip["keys"]) == ([0, 1], {"layer": ["column", 0]})


def test_shared_heads_are_seen_in_the_shapes(open_visit: Callable[[str], Visit]) -> None:
    view = open_visit("qwen2").view(position=5)
    verdict, operations = panel.render(view)[1], panel.render(view)[4]
    shapes = {row[1]: row[3] for row in cells(operations)}
    assert (shapes["query q"], shapes["key k"], shapes["q turned"], shapes["k turned"]) == (
        "4 × 8", "2 × 8", "4 × 8", "2 × 8",
    )  # fmt: skip
    assert (shapes["scores"], shapes["mask"], shapes["gate"]) == ("4 × 6", "6", "64")
    formulas = {row[1]: row[2] for row in cells(operations)}
    assert formulas["query q"] == "W x + b, W = q_proj [32 × 32]"
    assert formulas["q turned"] == "pairs (i, i + 4) turned by 5 · θᵢ"
    assert read(verdict)["groups"][1][0] == "4 query heads, 2 key/value heads"
    plain = open_visit("gpt2").view(position=5)
    assert len(read(panel.render(plain)[1])["groups"]) == 1
    part = {row[1]: row[2] for row in cells(panel.render(plain)[4])}
    assert part["key k"] == "W x + b, W = rows 32 to 63 of c_attn"
    turned = {row[1]: row[2] for row in cells(panel.render(open_visit("fused").view(position=5))[4])}
    assert turned["q turned"] == "pairs (i, i + 2) turned by 5 · θᵢ, dimensions from 4 on as they are"


def test_the_copy_knows_every_operation_and_formula() -> None:
    say = words("layer")
    assert {key.removeprefix("op_") for key in say.sections if key.startswith("op_")} == set(OPERATIONS)
    forms = {key.removeprefix("form_") for key in say.sections if key.startswith("form_")}
    assert forms >= {*ACTIVATIONS, *(f"turn_{way}" for way in get_args(Pairs))}


def test_an_operation_that_this_model_has_not_leaves_the_first_chosen(open_visit: Callable[[str], Visit]) -> None:
    view = open_visit("gpt2").view(operation="gate")
    *_, operations, first = panel.render(view)
    assert operations["selected"] == 0
    assert read(first)["caption"].startswith("x normed: numbers 0 to 7 of 32")


def test_what_the_kernel_keeps_is_a_dash(open_visit: Callable[[str], Visit]) -> None:
    first = panel.render(open_visit("llama").view(operation="weights"))[-1]
    ours, model = cells(first)
    assert set(model[1:]) == {"–"}
    assert float(ours[1]) > 0


@pytest.mark.parametrize(("position", "last"), [(0, 0), (3, 3), (8, 7)])
def test_the_first_numbers_are_those_of_the_first_head(
    open_visit: Callable[[str], Visit], position: int, last: int
) -> None:
    view = open_visit("llama").view(operation="scores", position=position)
    first = panel.render(view)[-1]
    (scores,) = (one for one in view.results["layer"].operations if one.name == "scores")
    assert scores.shape == (4, position + 1)
    ours, model = cells(first)
    assert len(ours) == len(model) == last + 2
    counted = f"scores: numbers 0 to {last} of head 0; {4 * (position + 1)} in all." if last else ""
    assert read(first)["caption"] == (counted or "scores: the only number of head 0; 4 in all.")
    mixed = read(
        panel.render(dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, operation="mixed")))[-1]
    )
    assert mixed["caption"] == "mix: numbers 0 to 7 of head 0; 32 in all."


@pytest.mark.parametrize("way", ["restart", "go_on"])
def test_in_a_window_the_position_by_which_the_layer_turns_is_said(way: str) -> None:
    visit = Visit(tiny("llama"), context={"strategy": "sliding_window", "max_tokens": 8, "positions": way})
    view = visit.view()
    operations = panel.render(view)[4]
    visit.runtime.shut_down()
    # Of six tokens that were chosen five were fed.
    told = 7 if way == "restart" else len(tiny("llama").tokenizer("the cat sat on the mat")["input_ids"]) + 4
    assert told != view.fed_position
    caption = read(operations)["caption"]
    assert f"Layer 0 at position {view.fed_position}." in caption
    assert f"was told position {told} for this token: the cosines and sines are of {told}." in caption
    assert f"cos({told} · θᵢ), one θ a pair" in [row[2] for row in cells(operations)]


def test_where_nothing_has_left_a_window_no_second_position_is_said(open_visit: Callable[[str], Visit]) -> None:
    for name in ("llama", "gpt2"):
        assert "told" not in read(panel.render(open_visit(name).view())[4])["caption"]


def test_a_fault_is_said_and_marked(open_visit: Callable[[str], Visit]) -> None:
    view = open_visit("llama").view()
    panel.render(view)
    found = view.results["layer"]
    for wrong in (0.3, float("nan")):
        faulty = [dataclasses.replace(one, difference=wrong) for one in found.operations]
        bad = dataclasses.replace(found, operations=tuple(faulty), largest=wrong, worst="up", dtype="bfloat16")
        view.results["layer"] = bad
        verdict, operations = panel.render(dataclasses.replace(view, probe=lambda *_, **__: bad))[1:5:3]  # noqa: B023
        heading, text = read(verdict)["groups"][0][0], read(verdict)["groups"][0][2]
        assert "more than roundings explain (0.0001)" in heading
        assert "rounds after each operation" in text
        assert all(row[4][1] == "warn" for row in read(operations)["rows"])
        (station,) = panel.stations(view)
        assert station.tone == "warn"
        assert {check.label: check.ok for check in checks.select(view)}["layer by hand = model"] is False


def test_the_station_tells_of_the_layer_in_sight(open_visit: Callable[[str], Visit]) -> None:
    visit = open_visit("llama")
    view = visit.view(layer=1)
    (before,) = panel.stations(view)
    assert (before.id, before.title, before.result, before.note) == ("layer", "One layer", "layer 1", "by hand")
    panel.render(view)
    (after,) = panel.stations(visit.view())
    assert after.note == f"diff {difference_text(view.results['layer'].largest)}"
    assert {check.label: check.ok for check in checks.select(view)}["layer by hand = model"] is True
    assert panel.stations(visit.view(layer=0))[0].note == "by hand"
    assert panel.stations(visit.view(layer=1, position=2))[0].note == "by hand"


def test_a_refusal_is_said_in_its_place(open_visit: Callable[[str], Visit]) -> None:
    def refuse(name: str, **_: Any) -> Any:
        raise Refused("no projections <b>that</b> can be found")

    where, *others = panel.render(dataclasses.replace(open_visit("llama").view(), probe=refuse, results={}))
    assert read(where)["stations"][0][2] == "no projections <b>that</b> can be found"
    assert others == [None] * 5


def test_a_recorded_run_says_why_there_is_nothing() -> None:
    assert "no model is loaded" in panel.unavailable(make_view())
