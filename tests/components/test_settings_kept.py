"""What no browser holds stays in an experiment, whatever a person does beside it."""

from typing import Any

import pytest

from components.desk import Desk
from components.visit import Visit
from engine.experiment import Experiment
from tests.components.replays import saved
from tests.components.test_compose_any import in_browser
from tests.components.test_desk import desk, trace
from tests.components.test_sharing import shown, text

__all__ = ["desk"]  # a fixture

SEED = 2**62 + 1
STOPS = ("\n\n", r"a\nb", "a\r\nb")
BANNED = ("\n", "a\nb", " x")
FIELDS: dict[str, Any] = {
    "sampling": {"seed": SEED, "bad_words": BANNED},
    "stop": {"max_new_tokens": 3, "stop_strings": STOPS},
}


@pytest.fixture
def visit(desk: Desk) -> Visit:
    return desk.open("visitor", link=text(desk, **FIELDS))


def holds_all(experiment: Experiment) -> bool:
    sampling = experiment.sampling
    return (sampling.seed, sampling.bad_words, experiment.stop.stop_strings) == (SEED, BANNED, STOPS)


def go(desk: Desk, visit: Visit, message: str = "", **changes: Any) -> None:
    for _ in desk.run(visit, message, in_browser(shown(desk, visit)) | changes):
        pass
    assert visit.notice == ""


def test_beside_a_changed_setting(desk: Desk, visit: Visit) -> None:
    go(desk, visit, temperature=0.5)
    assert trace(desk, visit).experiment.sampling.temperature == 0.5
    assert holds_all(trace(desk, visit).experiment)


def test_in_a_new_conversation(desk: Desk, visit: Visit) -> None:
    desk.new(visit, "the dog", in_browser(shown(desk, visit)))
    assert visit.notice == ""
    assert [message.content for message in trace(desk, visit).experiment.messages or ()] == ["the dog"]
    assert holds_all(trace(desk, visit).experiment)


def test_with_a_message_after_the_answer(desk: Desk, visit: Visit) -> None:
    go(desk, visit)
    go(desk, visit, "the dog", temperature=0.5)
    assert len(trace(desk, visit).experiment.messages or ()) == 3
    assert holds_all(trace(desk, visit).experiment)


def test_in_a_grid_and_in_its_cell(desk: Desk, visit: Visit) -> None:
    form = in_browser(shown(desk, visit))
    for _ in desk.grid(visit, "0.5", str(SEED), form):
        pass
    assert visit.notice == ""
    desk.select(visit, {"cell": 0})
    assert trace(desk, visit).experiment.sampling.temperature == 0.5
    assert holds_all(trace(desk, visit).experiment)


def test_after_a_record(desk: Desk, visit: Visit) -> None:
    go(desk, visit)
    desk.play(visit, saved(desk, visit), made=1)
    desk.step(visit, "", in_browser(shown(desk, visit)))  # goes on in the record
    assert visit.playing.made == 2
    go(desk, visit, temperature=0.5)
    assert visit.playing is None
    assert holds_all(trace(desk, visit).experiment)


def test_system_messages_stay_in_place_until_the_form_says_another(desk: Desk) -> None:
    roles = ("system", "user", "system", "user")
    fields = {"messages": [{"role": role, "content": "the cat"} for role in roles], "stop": {"max_new_tokens": 3}}
    visit = desk.open("visitor", link=text(desk, **fields))
    go(desk, visit, temperature=0.5)
    assert tuple(message.role for message in trace(desk, visit).experiment.messages or ()) == roles
    go(desk, visit, system_prompt="Be brief.")
    said = [(message.role, message.content) for message in trace(desk, visit).experiment.messages or ()]
    assert said == [("system", "Be brief."), ("user", "the cat"), ("user", "the cat")]
