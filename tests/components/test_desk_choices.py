"""What can be chosen on the page moves the cursor, and what is not there does not."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace

import pytest

from components.compose import form_values
from components.desk import Desk
from components.visit import Visit
from engine.catalog import load_catalog
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import Trace
from tests.engine.conversations import experiment


@pytest.fixture
def desk(llama) -> Iterator[Desk]:
    runtime = Runtime(llama, load_catalog(), Settings())
    ready: Future[Runtime] = Future()
    ready.set_result(runtime)
    yield Desk(ready, experiment(prompt="the cat sat"))
    runtime.shut_down()


@pytest.fixture
def visit(desk: Desk) -> Visit:
    return desk.open("visitor")


def run(desk: Desk, visit: Visit) -> None:
    for _ in desk.run(visit, "", form_values(desk.default)):
        pass


def trace(desk: Desk, visit: Visit) -> Trace:
    found = desk.view(visit).trace
    assert found is not None
    return found


def test_layers_heads_and_figures_are_chosen_and_stay_chosen(desk: Desk, visit: Visit) -> None:
    desk.select(visit, {"layer": 1, "head": 3})
    desk.select(visit, {"figure": "entropy"})
    desk.select(visit, {"operation": "mixed"})
    run(desk, visit)
    desk.back(visit)
    assert (visit.cursor.layer, visit.cursor.head, visit.cursor.figure) == (1, 3, "entropy")
    assert visit.cursor.operation == "mixed"
    desk.select(visit, {"head": 0})
    assert (visit.cursor.layer, visit.cursor.head) == (1, 0)


@pytest.mark.parametrize(
    "key",
    [
        {"layer": 2}, {"head": 4}, {"layer": -1}, {"head": "1"}, {"head": 1.0}, {"layer": True}, {"head": [0]},
        {"figure": "__class__"}, {"figure": []},
        {"operation": "query "}, {"operation": {}}, {"query": 3}, {"query": ["s"]},
        {"position": 10_000}, {"fed": -1}, {"fed": "x"}, {},
    ],
)  # fmt: skip
def test_what_is_not_there_cannot_be_chosen(desk: Desk, visit: Visit, key: dict[str, object]) -> None:
    before = visit.cursor
    desk.select(visit, key)
    assert visit.cursor == before
    assert visit.notice == ""


def test_a_position_of_the_answer_is_reached_by_what_was_fed(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    first = trace(desk, visit).steps(0)[0].position
    for fed, position in ((3, 3), (first - 1, first - 1), (first, first + 1)):
        desk.select(visit, {"fed": fed})
        assert visit.cursor.position == position
        assert desk.view(visit).fed_position == fed


def test_the_matrix_is_that_of_the_selected_head(desk: Desk, visit: Visit) -> None:
    desk.select(visit, {"layer": 1, "head": 3})
    desk.ask(visit, "attention_matrix")
    matrix = visit.results["attention_matrix"]
    assert (matrix.turn, matrix.layer, matrix.head) == (0, 1, 3)
    assert len(matrix.weights) == matrix.positions


def test_layer_and_head_are_of_this_model(desk: Desk, visit: Visit) -> None:
    """A smaller model was chosen, or another's record was left: what is selected must exist, or no panel shows more."""
    facts = desk.view(visit).facts
    visit.cursor = replace(visit.cursor, layer=99, head=98)
    cursor = desk.view(visit).cursor
    assert (cursor.layer, cursor.head) == (facts.layers - 1, facts.heads - 1)
