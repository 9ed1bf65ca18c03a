"""The page over a GPU that is lent: what cannot be had becomes a notice, and the same button works later."""

from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from components.compose import form_values
from components.desk import Desk
from components.panels import PANELS
from engine.answers.refusal import Refusal
from engine.bursts import Bursts
from engine.catalog import load_catalog
from engine.conversation import Conversation
from engine.refusals import NoGpu, Refused
from engine.runtime import Runtime
from engine.settings import Settings
from tests.components.replays import saved
from tests.engine.conversations import experiment, finish, ids
from tests.engine.forking import Forking

GONE = Refused("your GPU time is used up")


@pytest.fixture
def gpu() -> Forking:
    return Forking()


@pytest.fixture
def desk(llama, gpu: Forking) -> Iterator[Desk]:
    settings = Settings(max_new_tokens=100)
    runtime = Runtime(llama, load_catalog(), settings, place=Bursts(llama, settings.cache_bytes, gpu))
    ready: Future[Runtime] = Future()
    ready.set_result(runtime)
    yield Desk(ready, experiment(model=llama.facts.model_id))
    runtime.shut_down()


def run(desk: Desk, visit) -> int:
    return sum(1 for _ in desk.run(visit, "", form_values(desk.default)))


def test_a_page_runs_and_shows_its_tokens_as_they_come(desk: Desk, llama) -> None:
    visit = desk.open("visitor")
    assert visit.notice == ""
    assert run(desk, visit) >= 1
    assert ids(desk.view(visit).trace) == ids(finish(Conversation(llama, desk.default)))


def test_a_page_that_is_opened_without_gpu_time_tells_and_goes_on_later(desk: Desk, gpu: Forking) -> None:
    gpu.fail_next = GONE
    visit = desk.open("visitor")
    assert visit.notice == str(GONE)
    view = desk.view(visit)
    reasons = {panel.STATION: panel.unavailable(view) for panel in PANELS}
    for panel in PANELS:
        if not reasons[panel.STATION]:
            panel.render(view)
    assert run(desk, visit) >= 1
    assert visit.notice == ""
    assert desk.view(visit).trace.turns == 1


def test_a_run_without_gpu_time_leaves_what_was_made(desk: Desk, gpu: Forking) -> None:
    visit = desk.open("visitor")
    desk.step(visit, "", form_values(desk.default))
    gpu.fail_next = GONE
    run(desk, visit)
    assert visit.notice == str(GONE)
    assert len(desk.view(visit).steps) == 1


def test_a_panel_that_asks_says_why_it_cannot_be_drawn(desk: Desk, gpu: Forking) -> None:
    visit = desk.open("visitor")
    run(desk, visit)
    (lens,) = (panel for panel in PANELS if panel.STATION == "lens")
    gpu.fail_next = GONE
    assert str(GONE) in str(lens.render(desk.view(visit)))
    assert str(GONE) not in str(lens.render(desk.view(visit)))


def test_that_the_gpu_was_not_there_is_no_part_of_a_record(desk: Desk, gpu: Forking) -> None:
    visit = desk.open("visitor")
    run(desk, visit)
    view = desk.view(visit)
    assert view.probe is not None
    gpu.fail_next = NoGpu("your GPU time is used up")
    with pytest.raises(NoGpu):
        view.probe("lens", turn=0, position=3)
    kept = saved(desk, visit).answers
    assert [one for one in kept if isinstance(one.result, Refusal)] == []


def test_a_record_that_the_gpu_leaves_half_made_is_not_saved(desk: Desk, gpu: Forking) -> None:
    visit = desk.open("visitor")
    run(desk, visit)
    gpu.fail_next = NoGpu("your GPU time is used up")
    assert [one for one in desk.record(visit, "0") if one is not None] == []
    assert visit.notice == "your GPU time is used up"


def test_what_was_refused_of_an_earlier_moment_is_told_again_by_the_record(desk: Desk) -> None:
    visit = desk.open("visitor")
    desk.step(visit, "", form_values(desk.default))
    with pytest.raises(Refused) as refused:
        desk.view(visit).probe("positions", turn=0, position=0)  # this model turns them and learns none
    desk.step(visit, "", form_values(desk.default))
    kept = saved(desk, visit).answers
    assert [one.result for one in kept if one.probe == "positions"] == [Refusal.of(refused.value)]
