"""What a link holds, on the page as it is laid out: whatever it is, the page stands."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.desk import Desk
from components.page import Page
from components.sharing.button import text_in_address
from components.visit import Visit
from engine.experiment import Experiment
from engine.link import Link, link_to_text
from tests.components.pages import page_over
from tests.components.test_desk import desk, trace
from tests.components.test_sharing import go, shown, text
from tests.engine.random_experiments import experiments, places

__all__ = ["desk"]  # a fixture


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


@settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(experiments(), places(), st.sampled_from(["step", "edit", "back", "move", "new", "link", "raw"]))
def test_whatever_a_valid_link_holds_the_page_stands(page: Page, desk: Desk, asked: Any, place: Any, then: str) -> None:
    asked["model"] = desk.default.model
    asked["stop"]["max_new_tokens"] = min(asked["stop"].get("max_new_tokens", 9), 9)
    made = Link(experiment=Experiment.model_validate(asked), **place)
    opened = desk.open("visitor", link=link_to_text(made))
    assert "failed" not in opened.notice
    assert opened.notice or trace(desk, opened).experiment == made.experiment
    assert page.frame(opened)  # also where it names a station that is not there
    assert opened.station in page.owner
    now = shown(desk, opened) | ({"use_template": False} if then == "raw" else {})
    arguments = {"move": (1,), "edit": (), "back": ()}
    getattr(desk, "step" if then == "raw" else then)(opened, *arguments.get(then, ("", now)))
    assert "failed" not in opened.notice
    for opened.station in page.owner:
        assert page.frame(opened)
    desk.close(opened.session_id)


def test_a_place_that_is_not_there_is_left_alone(desk: Desk, page: Page) -> None:
    place = {"layer": 99, "head": 99, "station": "nowhere", "operation": "nothing", "language": "xx", "step": 5_000}
    opened = desk.open("visitor", link=text(desk, place=place))
    assert (opened.cursor.layer, opened.cursor.head) == (0, 0)
    assert opened.language == "en"
    go(desk, opened)
    assert desk.view(opened).cursor.position is None


def test_the_page_opens_with_the_station_of_the_link_and_fills_the_form(desk: Desk, page: Page) -> None:
    fields = {"sampling": {"temperature": 0.5}}
    for station, expected in (("draw", "draw"), ("nowhere", "prompt")):
        link = text(desk, place={"station": station}, **fields)
        request: Any = SimpleNamespace(session_hash="visitor", query_params={"run": link})
        *_, (opened, frame) = page._open(Visit(), "en", request)
        assert opened.station == expected
        assert frame["first"]["rail"]["active"] == expected
        _, *values = page._restore(opened)
        assert dict(zip(page.form, values, strict=True))["temperature"] == 0.5
        assert len(page._restore(opened)) == len(values) + 1


def test_a_parameter_of_any_kind_is_text() -> None:
    for parameters, read_as in (({"run": "x"}, "x"), ({"run": ""}, ""), ({}, "")):
        request: Any = SimpleNamespace(query_params=parameters)
        assert text_in_address(request) == read_as
