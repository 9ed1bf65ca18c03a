"""Choosing a model without a browser: what is said meanwhile, what begins anew, what a refusal leaves as it was."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from components.choosing import LOOK_EVERY, loading_text
from components.compose import form_values
from components.desk import Desk
from components.visit import Visit
from engine.catalog import ModelError
from engine.experiment import parse_experiment
from engine.link import Link, link_to_text
from engine.loading.progress import Progress
from engine.many_runtimes import ManyRuntimes
from engine.models_at_hand import ModelsAtHand
from engine.record import Record
from tests.engine.test_many_runtimes import Shop, catalog
from tests.patience import PATIENCE


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def desk(shop: Shop) -> Iterator[Desk]:
    hand = ModelsAtHand(catalog(), started="first", offered=["second", "third"], loader=shop.load)
    assert hand.begin("first").runtime
    ready: Future[ManyRuntimes] = Future()
    ready.set_result(ManyRuntimes(hand))
    data = {"version": 1, "model": "first", "messages": [{"role": "user", "content": "the cat sat"}]}
    default = parse_experiment(data | {"stop": {"max_new_tokens": 4}}, models=["first"])
    yield Desk(ready, default, hand)
    ready.result().shut_down()


@pytest.fixture
def visit(desk: Desk) -> Visit:
    return desk.open("visitor")


def choose(desk: Desk, visit: Visit, model_id: str, **changes: Any) -> list[str]:
    return [visit.loading for _ in desk.choose_model(visit, model_id, form_values(desk.default) | changes)]


def test_a_chosen_model_begins_with_the_first_question(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "the dog", form_values(desk.default))
    choose(desk, visit, "second", temperature=0.5)
    trace, facts = desk.view(visit).trace, desk.view(visit).facts
    assert trace is not None
    assert (visit.notice, visit.loading, visit.refill) == ("", "", True)
    assert (trace.experiment.model, facts.model_id, desk.model_of(visit)) == ("second",) * 3
    assert [message.content for message in trace.experiment.messages or ()] == ["the dog"]
    assert trace.experiment.sampling.temperature == 0.5
    assert trace.prefilled(0) is not None


def test_a_chosen_model_is_given_every_digit_of_the_seed(desk: Desk, visit: Visit) -> None:
    desk.new(visit, "the dog", form_values(desk.default) | {"seed": 2**62 + 1})
    choose(desk, visit, "second", seed=float(2**62 + 1))
    trace = desk.view(visit).trace
    assert trace is not None
    assert (trace.experiment.model, trace.experiment.sampling.seed) == ("second", 2**62 + 1)
    desk.step(visit, "", form_values(trace.experiment))
    assert len(desk.view(visit).steps) == 1
    assert desk.model_of(desk.open("another")) == "first"


def test_token_ids_are_left_behind_with_their_vocabulary(desk: Desk, visit: Visit) -> None:
    desk.new(visit, "the dog", form_values(desk.default) | {"suppress_tokens": "5, 6"})
    choose(desk, visit, "second", suppress_tokens="5, 6")
    trace = desk.view(visit).trace
    assert trace is not None
    assert (trace.experiment.model, trace.experiment.sampling.suppress_tokens) == ("second", ())


def test_how_far_it_has_come_is_told_while_the_visit_goes_on(desk: Desk, visit: Visit, shop: Shop) -> None:
    go_on = threading.Event()

    def wait(model_id: str, report: Any) -> None:
        report(Progress("downloading", 512, 2048))
        assert go_on.wait(PATIENCE)

    shop.before = wait
    frames = desk.choose_model(visit, "second", form_values(desk.default))
    next(frames)
    assert visit.loading == "Second is being downloaded, once: 512 B of 2.00 KiB."
    desk.step(visit, "", form_values(desk.default))
    assert visit.notice == ""
    assert desk.model_of(visit) == "first"
    go_on.set()
    assert list(frames) == []
    assert (desk.model_of(visit), visit.loading) == ("second", "")


def test_of_two_choices_the_later_one_counts(desk: Desk, visit: Visit, shop: Shop) -> None:
    go_on = threading.Event()
    shop.before = lambda model_id, report: go_on.wait(PATIENCE) and None
    first = desk.choose_model(visit, "second", form_values(desk.default))
    next(first)
    second = desk.choose_model(visit, "third", form_values(desk.default))
    next(second)
    go_on.set()
    list(second)
    list(first)
    assert desk.model_of(visit) == "third"
    assert visit.loading == ""


def test_a_model_that_cannot_be_had_is_told_and_nothing_changes(desk: Desk, visit: Visit, shop: Shop) -> None:
    desk.step(visit, "", form_values(desk.default))

    def fail(model_id: str, report: Any) -> None:
        raise ModelError("Second needs 9 GiB and 1 GiB are free")

    shop.before = fail
    choose(desk, visit, "second")
    assert visit.notice == "Second needs 9 GiB and 1 GiB are free"
    assert (desk.model_of(visit), visit.loading, len(desk.view(visit).steps)) == ("first", "", 1)


@pytest.mark.parametrize("hostile", ["hidden", "../x", "org/name", ""])
def test_what_is_not_offered_cannot_be_chosen(desk: Desk, visit: Visit, shop: Shop, hostile: str) -> None:
    choose(desk, visit, hostile)
    assert "is not loaded" in visit.notice
    assert shop.made == ["first"]
    assert desk.model_of(visit) == "first"


def test_the_same_model_again_changes_nothing(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form_values(desk.default))
    choose(desk, visit, "first")
    assert len(desk.view(visit).steps) == 1


def test_a_model_that_was_put_away_is_told_and_the_visit_begins_again(desk: Desk, visit: Visit, shop: Shop) -> None:
    shop.room = 2
    choose(desk, visit, "second")
    other = desk.open("another")
    choose(desk, other, "third")
    desk.step(visit, "", form_values(desk.default))
    assert "put away" in visit.notice
    assert desk.model_of(visit) == "first"


def choose_bare(desk: Desk, visit: Visit) -> None:
    """Choose the second model, which is robbed of its template."""
    assert desk.hand is not None
    runtime = desk.hand.begin("second").runtime
    bare = vars(runtime.facts) | {"chat_template": None}
    object.__setattr__(runtime._loaded, "facts", type(runtime.facts)(**bare))
    desk.hand.facts["second"] = runtime.facts
    choose(desk, visit, "second")


def test_a_recorded_chat_runs_as_its_bare_question_where_there_is_no_template(desk: Desk, visit: Visit) -> None:
    whole = desk.view(visit).trace
    assert whole is not None
    choose_bare(desk, visit)
    desk.play(visit, Record(whole))
    desk.run_live(visit)
    trace = desk.view(visit).trace
    assert trace is not None
    assert (trace.experiment.model, trace.experiment.prompt) == ("second", "the cat sat")
    assert visit.notice.endswith("It has no chat template, so it is given the bare question.")
    choose(desk, visit, "first")
    desk.play(visit, Record(whole))
    desk.run_live(visit)
    trace = desk.view(visit).trace
    assert trace is not None
    assert (trace.experiment, visit.notice) == (whole.experiment, "")


def test_who_goes_on_after_a_record_of_another_model_is_told_and_its_token_ids_stay_behind(
    desk: Desk, visit: Visit
) -> None:
    whole = desk.view(visit).trace
    assert whole is not None
    suppressed = whole.experiment.sampling.model_copy(update={"suppress_tokens": (5,)})
    asked = whole.experiment.model_copy(update={"sampling": suppressed})
    choose(desk, visit, "second")
    desk.play(visit, Record(replace(whole, experiment=asked)))
    desk.step(visit, "a cat", form_values(asked))
    trace = desk.view(visit).trace
    assert trace is not None
    assert (trace.experiment.model, trace.experiment.sampling.suppress_tokens) == ("second", ())
    assert visit.notice.startswith("The record was made on first.")


def test_a_model_without_a_template_gets_the_bare_question_and_back(desk: Desk, visit: Visit) -> None:
    choose_bare(desk, visit)
    trace = desk.view(visit).trace
    assert trace is not None
    assert trace.experiment.prompt == "the cat sat"
    choose(desk, visit, "third", use_template=False)
    trace = desk.view(visit).trace
    assert trace is not None
    assert trace.experiment.prompt is None


@pytest.mark.parametrize("stage", ["waiting", "downloading", "converting", "reading"])
def test_every_stage_has_its_sentence(stage: Any) -> None:
    assert loading_text("Tiny", Progress(stage)).startswith("Tiny ")


@pytest.mark.parametrize(("later", "ends"), [("third", "third"), ("first", "first")])
def test_the_later_choice_counts_when_it_is_there_first(
    desk: Desk, visit: Visit, shop: Shop, later: str, ends: str
) -> None:
    """The page has shown all there is to tell of the earlier one, and waits for it when the later one is chosen."""
    choose(desk, desk.open("another"), "third")
    go_on, waits = threading.Event(), threading.Event()

    def wait(model_id: str, report: Any) -> None:
        waits.set()
        assert go_on.wait(PATIENCE)

    shop.before = wait
    earlier = desk.choose_model(visit, "second", form_values(desk.default))
    next(earlier)
    rest = threading.Thread(target=lambda: list(earlier))
    rest.start()
    assert waits.wait(PATIENCE)
    time.sleep(3 * LOOK_EVERY)  # it looks again and finds nothing new to tell
    choose(desk, visit, later)
    go_on.set()
    rest.join(PATIENCE)
    assert desk.model_of(visit) == ends
    assert visit.loading == ""


def test_a_link_waits_until_its_model_is_chosen(desk: Desk, visit: Visit, shop: Shop) -> None:
    asked = desk.runtime.parse(desk.default.model_dump() | {"model": "second", "prompt": "a dog", "messages": None})
    text = link_to_text(Link(experiment=asked, station="tokens", step=1))
    opened = desk.open("another", link=text)
    assert "Choose it at the top of the page, and the link opens" in opened.notice
    assert (desk.model_of(opened), opened.station, desk.hand.loaded("second")) == ("first", Visit().station, None)
    choose(desk, opened, "second")
    assert (opened.notice, desk.model_of(opened), opened.station, opened.refill) == ("", "second", "tokens", True)
    assert desk.view(opened).trace.experiment == asked
    assert desk.view(opened).trace.events == ()  # nothing was run
    desk.step(opened, "", form_values(asked))
    desk.step(opened, "", form_values(asked))
    assert desk.view(opened).step.step == 1


def test_a_link_that_waits_takes_no_conversation_of_ones_own_away(desk: Desk, shop: Shop) -> None:
    asked = desk.runtime.parse(desk.default.model_dump() | {"model": "second", "prompt": "a dog", "messages": None})
    opened = desk.open("another", link=link_to_text(Link(experiment=asked)))
    desk.new(opened, "a cat", form_values(desk.default))
    choose(desk, opened, "second")
    assert desk.model_of(opened) == "second"
    assert "a cat" in str(desk.view(opened).trace.experiment)


def test_a_link_is_forgotten_where_another_model_is_chosen(desk: Desk, shop: Shop) -> None:
    asked = desk.default.model_copy(update={"model": "second"})
    opened = desk.open("another", link=link_to_text(Link(experiment=asked, station="tokens")))
    choose(desk, opened, "third")
    choose(desk, opened, "second")
    assert (desk.model_of(opened), opened.station) == ("second", Visit().station)
