"""Gradio runs each handler, and each step of a generator, in a new context: all speak the language of the visit."""

from collections.abc import Callable, Iterator
from contextvars import Context
from dataclasses import replace
from typing import Any

import pytest

from components.copy import speak, words_in
from components.export.layout import layouts, widget_ids
from components.export.shots import _draw, _Listening
from components.page import Page
from components.panels import PANELS
from components.visit import Visit
from engine.refusals import NothingStarted
from tests.components.pages import page_over
from tests.components.replays import finished

SAVE, MAKE, OPEN = ("record-save", "click"), ("record-page", "click"), ("record-open", "upload")


def handler(page: Page, name: tuple[str, str]) -> Callable[..., Any]:
    """The function of an event, by the component that has it and what happens there."""
    element, event = name
    (part,) = [one for one in page.blocks.blocks.values() if one.elem_id == element]
    (found,) = [one.fn for one in page.blocks.fns.values() if (part._id, event) in one.targets]
    return found


def steps(generator: Iterator[Any]) -> list[Any]:
    """What it yields, with each step in a new context, as gradio has it."""
    found, end = [], object()
    while (value := Context().run(next, generator, end)) is not end:
        found.append(value)
    return found


@pytest.fixture
def page(live) -> Page:
    return page_over(live)


@pytest.fixture
def visit(live) -> Visit:
    made = finished(live)
    made.language = "zh"
    return made


def sentence(station: str, key: str, **values: Any) -> str:
    return words_in("zh", station).text(key, **values)


def test_saving_speaks_the_language_from_its_first_step_to_its_last(page, visit):
    said = []
    for _ in steps(told(handler(page, SAVE)(visit, "all"), visit, said)):
        pass
    assert said[0] == sentence("record", "keeping", done=0, all=int(said[0].split("/")[1].split()[0]))
    beginning = sentence("record", "saved", answers="|", size="|").partition("|")[0]
    assert said[-1].startswith(beginning)
    assert len(said) > 3
    assert all(any("一" <= char <= "鿿" for char in one) for one in said)


def told(generator: Iterator[Any], visit: Visit, said: list[str]) -> Iterator[Any]:
    for step in generator:
        said += [visit.said] if visit.said else []
        yield step


@pytest.mark.parametrize("name", [SAVE, MAKE])
def test_who_saves_during_a_run_is_told_so_in_the_language(page, visit, name):
    visit.running = True
    steps(handler(page, name)(visit, ""))
    assert visit.notice == sentence("record", "one_at_a_time")


def test_a_page_of_a_run_is_told_in_the_language(page, visit):
    steps(handler(page, MAKE)(visit, ""))
    assert visit.said.startswith(sentence("record_page", "made", size="|").partition("|")[0])


def test_a_file_that_is_no_record_is_told_in_the_language(page, visit):
    Context().run(handler(page, OPEN), visit, b"no record")
    assert visit.notice.startswith(sentence("record", "refused", reason="|").partition("|")[0])


def refuse(*_: Any, **__: Any) -> Any:
    raise NothingStarted


ENGLISH = str(NothingStarted())


def test_whatever_the_engine_refuses_a_panel_says_in_the_language(page, live, visit, monkeypatch):
    monkeypatch.setattr(live, "_found", refuse)
    shown = {}
    for visit.station in page.owner:
        shown[visit.station] = str(Context().run(page.frame, visit))
    assert [station for station, value in shown.items() if ENGLISH in value] == []
    assert any(sentence("refusals", "nothing_started") in value for value in shown.values())


def test_whatever_the_engine_refuses_an_exported_page_says_in_its_language(live, visit):
    def drawn() -> list[dict[str, Any]]:
        speak("zh")
        view = replace(live.view(visit), probe=refuse)
        panels = layouts(PANELS)
        return [_draw(one, view, _Listening(), widget_ids(panels[one.STATION]["parts"])) for one in PANELS]

    shown = str(Context().run(drawn))
    assert ENGLISH not in shown
    assert sentence("refusals", "nothing_started") in shown
