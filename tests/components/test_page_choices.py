"""Choices that overtake one another, come at once, or are nothing that a page would send."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from components.choices import positions
from components.desk import Desk
from components.page import Page
from components.visit import Visit
from tests.components.pages import page_over
from tests.components.test_desk import desk, form, ids, visit

__all__ = ["desk", "visit"]  # fixtures


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


def test_a_choice_that_changed_the_run_is_shown_though_another_came_after_it(
    page: Page, desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.step(visit, "", form(desk))
    frame = page.frame

    def overtaken(visit: Visit) -> dict[str, Any]:
        visit.choose({"head": 1})
        return frame(visit)

    monkeypatch.setattr(page, "frame", overtaken)
    assert page._select(visit, SimpleNamespace(_data={"layer": 1})) == gr.skip()
    taken = page._select(visit, SimpleNamespace(_data={"token_id": 65}))
    assert taken != gr.skip()
    assert 65 in ids(desk, visit)


@pytest.mark.parametrize("came", list(itertools.permutations(range(3))))
def test_the_choice_that_was_made_last_counts_in_whatever_order_they_come(
    page: Page, visit: Visit, came: tuple[int, ...]
) -> None:
    made = [{"position": 3, "order": 1}, {"position": 1, "order": 2}, {"key": {"position": 2}, "order": 3}]
    stations = [{"id": "draw", "order": 4}, {"id": "prompt", "order": 5}, {"id": "stop", "order": 6}]
    for index in came:
        page._select(visit, SimpleNamespace(_data=made[index]))
        page._choose_station(visit, SimpleNamespace(_data=stations[index]))
    assert (visit.cursor.position, visit.station) == (2, "stop")


def test_choices_of_different_things_at_once_are_all_kept(visit: Visit) -> None:
    """What is chosen is read, changed and written back: between these another choice must not come."""
    fields = ("layer", "head", "position")
    rounds = range(1, 2000)

    def choosing(name: str) -> None:
        for number in rounds:
            visit.choose({name: number}, number)

    began = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(choosing, fields))
    finally:
        sys.setswitchinterval(began)
    assert [getattr(visit.cursor, name) for name in fields] == [rounds[-1]] * len(fields)
    assert visit.choices == len(rounds) * len(fields)


def test_each_of_several_moves_at_once_counts(visit: Visit) -> None:
    moves, began = 2000, sys.getswitchinterval()
    visit.look_at(position=0)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(lambda _: visit.move(1, 4 * moves), range(moves)))
    finally:
        sys.setswitchinterval(began)
    assert (visit.cursor.position, visit.choices) == (moves, moves)


def test_no_press_of_a_move_is_dropped_and_one_that_another_overtook_shows_nothing(
    page: Page, desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = [(one._id, "click") for one in (page.left, page.right)]
    assert [one.trigger_mode for one in page.blocks.fns.values() if one.targets[:1] in ([moves[0]], [moves[1]])] == [
        "multiple",
        "multiple",
    ]
    frame, here = page.frame, visit.cursor.position
    assert here is None

    def overtaken(visit: Visit) -> dict[str, Any]:
        monkeypatch.setattr(page, "frame", frame)
        assert page._move(visit, -1) != gr.skip()
        return frame(visit)

    monkeypatch.setattr(page, "frame", overtaken)
    last = positions(desk.view(visit)) - 1
    assert page._move(visit, -1) == gr.skip()
    assert visit.cursor.position == last - 2


@pytest.mark.parametrize(
    "data",
    [None, [], "x", 5, {"id": []}, {"id": {}}, {"key": [1]}, {"key": "x"}, {"position": 1.5}, {"order": "x"}],
)
def test_event_data_of_any_kind_chooses_nothing(page: Page, desk: Desk, visit: Visit, data: object) -> None:
    event: Any = SimpleNamespace(_data=data)
    before = visit.station, visit.cursor
    page._choose_station(visit, event)
    page._select(visit, event)
    assert (visit.station, visit.cursor) == before


def test_making_a_frame_writes_no_choice(desk: Desk, visit: Visit) -> None:
    """It is made beside other events, so what it wrote could undo what was chosen meanwhile."""
    visit.look_at(layer=99)
    before = visit.cursor
    shown = desk.view(visit)
    assert visit.cursor is before
    assert shown.cursor.layer == shown.facts.layers - 1
