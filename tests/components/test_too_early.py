"""A page that is served before its model: what is pressed meanwhile counts where it can, and else does nothing."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from components.compose import form_values
from components.copy import DEFAULT, words_in
from components.desk import Desk
from components.frame import BUTTONS
from components.page import Page
from components.visit import Visit
from components.widgets import host
from engine.many_runtimes import ManyRuntimes
from engine.models_at_hand import ModelsAtHand
from tests.components.languages import apart
from tests.components.pages import page_over
from tests.components.test_choosing import desk as several
from tests.components.test_choosing import shop
from tests.components.test_desk import desk as ready

__all__ = ["apart", "ready", "several", "shop"]  # fixtures

REQUEST: Any = SimpleNamespace(session_hash="visitor", query_params={})


@pytest.fixture
def desk(ready: Desk) -> Desk:
    """Its model is not here yet; `arrive` brings it."""
    return Desk(Future(), ready.default)


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


def arrive(desk: Desk, ready: Desk) -> None:
    desk._runtime.set_result(ready.runtime)


def test_what_is_pressed_does_not_wait_and_opens_no_session(page: Page, desk: Desk, ready: Desk) -> None:
    early, values = Visit(), [form_values(desk.default)[name] for name in page.form]
    presses = [
        *(lambda one=one: page._with_form(one)(early, "the dog", values) for one in (desk.step, desk.new)),
        *(lambda one=one: page._plain(one)(early) for one in (desk.stop, desk.back, desk.run_live)),
        *(lambda by=by: page._move(early, by) for by in (-1, 1)),
        lambda: page._edit(early, "a draft"),
        lambda: page._take(early, "the dog"),
        lambda: list(page._run(early, values)),
        lambda: list(page._grid(early, "1", "1", values)),
        lambda: page._panel(early),
        lambda: page._refill(early),
        lambda: page._select(early, SimpleNamespace(_data={"position": 1})),
        lambda: desk.list_lessons(early),
        lambda: list(desk.record(early)),
        lambda: desk.link(early, "the dog", form_values(desk.default)),
        lambda: desk.ask(early, "without_template"),
    ]
    for press in presses:
        press()
        assert early.notice in ("", words_in("en", "page").text("loading"))
        assert early.session_id == ""
    arrive(desk, ready)
    *_, (opened, _) = page._open(early, "en", REQUEST)
    assert (opened.session_id, opened.notice, opened.reading, opened.playing) == ("visitor", "", None, None)
    assert list(ready.runtime._sessions._sessions) == ["visitor"]


def test_a_model_that_is_chosen_before_the_first_is_here_is_not_taken(several: Desk) -> None:
    early, still = Visit(), Desk(Future(), several.default, several.hand)
    assert list(still.choose_model(early, "second", form_values(several.default))) == []
    assert (still.model_of(early), early.notice) == ("first", words_in("en", "page").text("loading"))
    assert several.hand.loaded("second") is None


def test_the_language_that_is_chosen_meanwhile_counts(page: Page, desk: Desk, ready: Desk) -> None:
    early = Visit()
    opening = page._open(early, "en", REQUEST)
    _, told = next(opening)
    assert host.read(told["first"])["notice"]["stations"][0][2] == words_in("en", "page").text("loading")
    early.language = "zh"
    assert page.frame(early)["language"] == "zh"
    arrive(desk, ready)
    *_, (opened, shown) = opening
    assert opened is early
    assert (opened.language, shown["language"], opened.session_id) == ("zh", "zh", "visitor")


@pytest.mark.parametrize(("chosen", "spoken"), [("zh", "zh"), (DEFAULT, "zh")])
def test_a_page_opens_in_the_language_that_was_chosen_before_its_turn_came_or_in_that_of_the_browser(
    page: Page, desk: Desk, ready: Desk, chosen: str, spoken: str
) -> None:
    arrive(desk, ready)
    browser = "en" if chosen == "zh" else "zh"
    *_, (opened, shown) = page._open(Visit(language=chosen), browser, REQUEST)
    assert (opened.language, shown["language"]) == (spoken, spoken)


def test_a_language_chosen_while_the_first_prompt_is_read_counts(
    page: Page, ready: Desk, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(desk, ready)
    early, reopen = Visit(), desk.reopen

    def meanwhile(visit: Visit) -> None:
        reopen(visit)
        early.language = "zh"

    monkeypatch.setattr(desk, "reopen", meanwhile)
    *_, (opened, _) = page._open(early, "en", REQUEST)
    assert opened.language == "zh"


def test_how_far_the_model_is_follows_the_language(several: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hand, early = several.hand, Visit()
    assert isinstance(hand, ModelsAtHand)
    held = hand.begin("first")
    waits = iter([False, False, False, True])
    monkeypatch.setattr(type(held), "wait", lambda *_: next(waits))
    told = Desk(Future[ManyRuntimes](), several.default, hand).waiting(early)
    first = next(told)
    early.language = "zh"
    second = next(told)
    assert first != second
    assert list(told) == []


def test_every_button_outside_the_panels_is_disabled_until_the_page_is_open(
    page: Page, ready: Desk, desk: Desk
) -> None:
    inside = {button.elem_id for button, *_ in (*page.panels.asks, *page.panels.grids)}
    made = [one for one in page.blocks.blocks.values() if isinstance(one, gr.Button | gr.UploadButton)]
    _, options = host.mounted(page.feed)
    assert set(options["disabled"]) == set(BUTTONS) == {one.elem_id for one in made} - inside
    arrive(desk, ready)
    shown = page.frame(ready.open("visitor"))
    assert {name for name in BUTTONS if shown["disabled"][name]} == {"stop"}
    assert set(options["hidden"]) <= set(shown["hidden"])
