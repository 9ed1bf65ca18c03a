"""What the page makes of events, without a browser: runs that break, events that overlap, data of any kind."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from components import frame
from components.copy import words
from components.desk import Desk
from components.message_field import back, sent
from components.page import Page
from components.visit import Visit
from components.widgets import host
from tests.components.pages import page_over
from tests.components.test_desk import desk, form, ids, trace, visit

__all__ = ["desk", "visit"]  # fixtures


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


def begin(page: Page, desk: Desk, visit: Visit, message: str) -> Iterator[dict[str, Any]]:
    """A run of the page, as Run begins it."""
    page._take(visit, message)
    values = form(desk, max_new_tokens=60, min_new_tokens=60)
    return page._run(visit, [values[name] for name in page.form])


def test_run_can_be_pressed_again_after_a_frame_that_failed(page: Page, desk: Desk, visit: Visit, monkeypatch) -> None:
    frames = begin(page, desk, visit, "the dog")
    next(frames)
    monkeypatch.setattr(page, "frame", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        next(frames)
    assert not visit.running


def test_run_can_be_pressed_again_after_its_event_was_given_up(page: Page, desk: Desk, visit: Visit) -> None:
    frames = begin(page, desk, visit, "the dog")
    next(frames)
    assert visit.running
    frames.close()
    assert not visit.running


def test_what_is_refused_during_a_run_does_not_bring_its_message_back(page: Page, desk: Desk, visit: Visit) -> None:
    frames = begin(page, desk, visit, "the dog")
    next(frames)
    desk.back(visit)
    assert "under way" in visit.notice
    for _ in frames:
        pass
    assert (visit.typed, visit.returned) == ("", "")


def test_a_message_that_was_refused_comes_back(page: Page, desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form(desk))
    page._take(visit, "the dog")
    values = form(desk)
    for _ in page._run(visit, [values[name] for name in page.form]):
        pass
    assert "not finished" in visit.notice
    assert (visit.typed, visit.returned) == ("", "the dog")
    assert page._give_back(visit) == back("the dog")
    assert len(ids(desk, visit)) == 1


@pytest.mark.parametrize("under_way", [False, True])
def test_a_refused_message_comes_back_though_run_was_pressed_twice(
    page: Page, desk: Desk, visit: Visit, under_way: bool
) -> None:
    desk.step(visit, "", form(desk))
    values = [form(desk)[name] for name in page.form]
    page._take(visit, "the dog")
    assert list(page._run(visit, values))
    page._take(visit, "")
    visit.running = under_way
    assert list(page._run(visit, values))
    assert page._give_back(visit) == back("the dog")


def test_a_press_that_was_refused_begins_no_run_once_the_other_has_ended(page: Page, desk: Desk, visit: Visit) -> None:
    frames = begin(page, desk, visit, "the dog")
    next(frames)
    assert page._take(visit, "")[0] == {}
    desk.stop(visit)
    for _ in frames:
        pass
    made = ids(desk, visit)
    values = [form(desk)[name] for name in page.form]
    assert list(page._run(visit, values))
    assert ids(desk, visit) == made
    following = begin(page, desk, visit, "")
    next(following)
    assert visit.running


def test_a_second_message_waits_in_its_field(page: Page, desk: Desk, visit: Visit) -> None:
    assert page._take(visit, "the dog")[0] == sent("the dog")
    settled, shown = page._take(visit, "another")
    assert settled == {}
    assert visit.typed == "the dog"
    assert "not finished" in visit.notice
    assert shown != gr.skip()
    values = form(desk)
    run = page._run(visit, [values[name] for name in page.form])
    next(run)
    assert page._take(visit, "another")[0] == {}
    for _ in run:
        pass
    assert (visit.typed, visit.notice) == ("", "")
    assert page._take(visit, "another")[0] == sent("another")


def test_a_message_that_is_on_its_way_is_not_given_back_by_the_run_before(page: Page, desk: Desk, visit: Visit) -> None:
    for _ in begin(page, desk, visit, ""):
        pass
    following = begin(page, desk, visit, "the dog")
    assert page._give_back(visit) == {}  # at the end of the run before
    for _ in following:
        pass
    assert visit.notice == ""
    assert trace(desk, visit).turns == 2


def test_what_is_typed_during_a_step_stays(page: Page, desk: Desk, visit: Visit) -> None:
    shown = form(desk)
    step, values = page._with_form(desk.step), [shown[name] for name in page.form]
    assert step(visit, "", values)[0] == {}
    assert step(visit, "too early", values)[0] == {}
    assert "not finished" in visit.notice
    for _ in desk.run(visit, "", form(desk)):
        pass
    assert step(visit, "the dog", values)[0] == sent("the dog")


def test_what_shows_progress_is_one_small_part(page: Page) -> None:
    """Gradio's page copies the value of whatever shows progress with each message of a run."""
    asked = [event for event in page.blocks.fns.values() if event.fn is not None]  # others stay in the browser
    events = [event for event in asked if event.api_visibility == "private" and event.outputs]
    assert len(events) > 40
    for event in events:
        shown = [part.elem_id for part in event.show_progress_on or event.outputs]
        assert (event.show_progress, shown) == ("hidden", ["names"]), event.fn


def test_no_event_of_the_server_has_the_form_among_its_inputs(page: Page) -> None:
    """After such an event gradio's page would set the state of every control with each message of every later event."""
    controls = {control._id for control in page.form.values()}
    asked = [event for event in page.blocks.fns.values() if event.fn is not None]
    assert len(asked) > 20
    assert [event.name for event in asked if controls & {part._id for part in event.inputs}] == []


def test_what_changes_at_every_token_comes_first_on_the_page(page: Page) -> None:
    """Gradio's page looks for it from the top of the tree, several times a token."""
    assert [part.elem_id for part in page.blocks.children[:2]] == ["feed", "names"]


def test_the_token_goes_ahead_of_a_frame_that_takes_its_time(
    page: Page, desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "SLOW_FRAME", 0.0)
    whole, early, *_ = frames = list(begin(page, desk, visit, "the dog"))
    pairs = len(frames) // 2 - 1  # a frame that a slow reader misses is skipped
    assert pairs > 20
    assert [bool(one["only"]) for one in frames] == [False, *[True, False] * pairs, False]
    shown = host.read(early["first"])["timeline"]["chips"]
    assert len(shown) > len(host.read(whole["first"])["timeline"]["chips"])
    assert set(early["only"]) == {"conversation", "timeline"}
    changed = {"first": None, "only": None, "began": None}
    assert early | changed == whole | changed
    assert early["began"] > whole["began"]


def test_a_frame_that_is_made_fast_goes_alone(
    page: Page, desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "SLOW_FRAME", 60.0)
    assert not any(one["only"] for one in begin(page, desk, visit, "the dog"))


def test_a_message_sent_before_the_page_is_open_stays_in_its_field(page: Page) -> None:
    early = Visit()
    assert page._take(early, "the dog") == [{}, gr.skip()]
    assert (early.typed, early.returned) == ("", "")


def test_the_tab_is_that_of_the_station_chosen_last(
    page: Page, desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.step(visit, "", form(desk))
    slow = page.frame

    def overtaken(visit: Visit) -> dict[str, Any]:
        """While the panel is made, a token is chosen."""
        monkeypatch.setattr(page, "frame", slow)
        page._select(visit, SimpleNamespace(_data={"position": 1}))
        return slow(visit)

    monkeypatch.setattr(page, "frame", overtaken)
    tab, shown = page._choose_station(visit, SimpleNamespace(_data={"id": "lens"}))
    assert (tab.selected, shown) == ("lens", gr.skip())


def test_what_cannot_be_edited_leaves_the_field_alone(page: Page, desk: Desk, visit: Visit) -> None:
    desk.runtime.close(visit.session_id)
    assert page._edit(visit, "a draft")[0] == gr.skip()
    assert visit.notice == words("page").text("session_gone")
    desk.step(visit, "", form(desk))
    assert page._edit(visit, "")[0] == "the cat sat"
    assert page._edit(visit, "the cat")[0] == ""


def test_a_draft_comes_back_when_the_edit_is_left(page: Page, desk: Desk, visit: Visit) -> None:
    for draft in ("a long draft", ""):
        assert page._edit(visit, draft)[0] == "the cat sat"
        assert page._edit(visit, "the cat stood")[0] == draft


@pytest.mark.parametrize("saved", ["save_edit", "step", "run"])
def test_a_draft_comes_back_once_when_the_edit_is_saved(page: Page, desk: Desk, visit: Visit, saved: str) -> None:
    for _ in desk.run(visit, "", form(desk)):
        pass
    page._edit(visit, "a draft")
    if saved == "run":
        for _ in begin(page, desk, visit, "the dog"):
            pass
        assert page._give_back(visit) == back("a draft")
    else:
        values = [form(desk)[name] for name in page.form]
        press = page._with_form(getattr(desk, saved))
        assert press(visit, "  ", values)[0] == {}  # refused: the edit goes on
        assert press(visit, "the dog", values)[0] == sent("the dog") | back("a draft")
    assert visit.notice == ""
    assert page._give_back(visit) == {}


def test_stop_can_be_pressed_while_a_record_is_made(page: Page, visit: Visit) -> None:
    assert page.frame(visit)["disabled"]["stop"]
    visit.keeping = True
    assert not page.frame(visit)["disabled"]["stop"]


def test_a_refused_save_sends_nothing(page: Page, desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form(desk))
    (save,) = (one.fn for one in page.blocks.fns.values() if one.targets == [(page.header.records.save._id, "click")])
    sent = [part[0] for part in save(visit, "no steps")]
    assert sent[0] == ""
    assert all(one in ("", gr.skip()) for one in sent)
    assert visit.notice
    assert any("base64" not in one and "\n" in one for part in save(visit, "") if isinstance(one := part[0], str))


def test_a_switch_of_the_language_is_never_dropped(page: Page) -> None:
    (asked,) = (one for one in page.blocks.fns.values() if one.targets == [(page.feed._id, "select")])
    assert asked.trigger_mode == "multiple"


def test_a_message_that_left_its_field_is_never_dropped(page: Page) -> None:
    """Run may be pressed while the page has not yet heard of the end of the run before."""
    modes = {event.name: event.trigger_mode for event in page.blocks.fns.values()}
    assert (modes["_run"], modes["_give_back"]) == ("multiple", "multiple")


def test_values_go_on_from_one_start_of_the_program_to_the_next() -> None:
    assert abs(host.moment() - time.time_ns()) < 60e9
    assert host.moment() <= host.moment()
