"""A page whose run was put away is told why: nobody was there, others took the place, or their model took the room."""

import pytest

from components.compose import form_values
from components.copy import words_in
from components.desk import Desk
from components.visit import Visit
from tests.components.test_choosing import choose, shop
from tests.components.test_choosing import desk as several
from tests.components.test_desk import desk, form, run, visit
from tests.engine.test_many_runtimes import Shop

__all__ = ["desk", "several", "shop", "visit"]  # fixtures


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_that_was_left_alone_is_told_so(desk: Desk, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visit, registry = desk.open("visitor", language), desk.runtime._sessions
    run(desk, visit)
    with monkeypatch.context() as patch:
        patch.setattr(registry, "_idle_seconds", 0)
        desk.runtime._scheduler.sweep()
    desk.back(visit)
    assert visit.notice == words_in(language, "page").text("session_idle")
    run(desk, visit)
    assert visit.notice == ""


def test_a_page_that_gave_way_to_another_is_not_told_that_it_was_left_alone_for_too_long(
    desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(desk, visit)
    monkeypatch.setattr(desk.runtime._sessions, "_limit", 1)
    desk.open("another")
    desk.step(visit, "", form(desk))
    assert visit.notice == words_in("en", "page").text("session_gave_way")
    desk.runtime.close(visit.session_id)
    desk.step(visit, "", form(desk))
    assert visit.notice == words_in("en", "page").text("session_gone")


def test_a_page_whose_model_was_unloaded_is_told_to_choose_it_again(several: Desk, shop: Shop) -> None:
    visit, shop.room = several.open("visitor"), 2
    choose(several, visit, "second")
    assert several.runtime.hand.begin("third").runtime
    several.step(visit, "", form_values(several.default))
    assert visit.notice == words_in("en", "page").text("model_put_away")
    assert several.model_of(visit) == "first"
    choose(several, visit, "second")
    assert (visit.notice, several.model_of(visit)) == ("", "second")
