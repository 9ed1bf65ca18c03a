"""What is refused at the desk, for want of room or of sense: it is told, and nothing is stuck afterwards."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from components.desk import Desk
from components.visit import Visit
from engine.refusals import Busy
from tests.components.test_desk import desk, form, ids, run, trace, visit

__all__ = ["desk", "visit"]  # fixtures


@pytest.mark.parametrize("position", [1.0, True, -1, 10_000, "1", [1], None])
def test_only_a_whole_number_of_a_position_moves_the_cursor(desk: Desk, visit: Visit, position: object) -> None:
    desk.select(visit, {"position": position})
    assert visit.cursor.position is None


@pytest.mark.parametrize("token_id", [-1, 10**30, True, 5.0])
def test_an_id_that_is_none_leaves_the_answer_as_it_is(desk: Desk, visit: Visit, token_id: object) -> None:
    run(desk, visit)
    made = ids(desk, visit)
    desk.select(visit, {"token_id": token_id})
    assert ids(desk, visit) == made
    assert "went wrong" not in visit.notice


@pytest.fixture
def full(desk: Desk) -> Iterator[Iterator[None]]:
    """A run of somebody else, and no room for another; closing it makes room."""
    desk.runtime._scheduler._settings = replace(desk.runtime._settings, max_runs=1)
    other = desk.open("somebody else")
    running = desk.run(other, "", form(desk, max_new_tokens=100, min_new_tokens=100))
    next(running)
    yield running
    running.close()


@pytest.mark.parametrize("again", ["", "and then"])
def test_a_follow_up_whose_run_was_refused_goes_on_when_there_is_room(
    desk: Desk, visit: Visit, again: str, request: pytest.FixtureRequest
) -> None:
    run(desk, visit)
    running = request.getfixturevalue("full")
    run(desk, visit, "and then")
    assert "under way; try again" in visit.notice
    running.close()
    desk.runtime.stop("somebody else")
    run(desk, visit, again)
    assert visit.notice == ""
    assert trace(desk, visit).experiment.follow_ups == ("and then",)
    assert trace(desk, visit).turns == 2


def test_another_message_takes_the_place_of_a_follow_up_whose_run_was_refused(
    desk: Desk, visit: Visit, request: pytest.FixtureRequest
) -> None:
    run(desk, visit)
    running = request.getfixturevalue("full")
    run(desk, visit, "and then")
    running.close()
    desk.runtime.stop("somebody else")
    run(desk, visit, "the dog")
    assert visit.notice == ""
    assert [message.content for message in trace(desk, visit).experiment.messages or ()][-1] == "the dog"


def test_a_session_that_cannot_be_opened_anew_is_told(desk: Desk, visit: Visit, monkeypatch) -> None:
    def busy(session_id: str | None = None) -> str:
        raise Busy("all places are taken")

    desk.close(visit.session_id)
    monkeypatch.setattr(desk.runtime, "open", busy)
    desk.step(visit, "", form(desk))
    assert "all places are taken" in visit.notice
