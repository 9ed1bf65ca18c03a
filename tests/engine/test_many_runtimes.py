"""Several models behind one door: loaded when wanted, one at a time, put away when memory is short, never mixed up."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engine.catalog import Catalog, Entry, ModelError, NoRoomError, load_catalog
from engine.experiment import Experiment, ExperimentError
from engine.facts import ModelFacts
from engine.loading.memory import needed_bytes
from engine.loading.progress import Progress, Report
from engine.many_runtimes import ManyRuntimes, model_of
from engine.models_at_hand import ModelsAtHand
from engine.refusals import ModelPutAway, Refused, SessionGone
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace_json import trace_to_json
from tests.engine.models import tiny
from tests.patience import PATIENCE

#: Id in these tests → name of the small model.
MODELS = {"first": "llama", "second": "gpt2", "third": "qwen3", "hidden": "full"}


def catalog() -> Catalog:
    shape = load_catalog().models[0]
    entries = tuple(shape.model_copy(update={"id": name, "title": name.title()}) for name in MODELS)
    return Catalog(default="first", models=entries)


class Shop:
    """Loads small models at once; `room` is how many may be here, `before` is done before each."""

    def __init__(self) -> None:
        self.room = len(MODELS)
        self.before: Callable[[str, Report], None] = lambda model_id, report: None
        self.missing = 1  # bytes that are said to be too few where there is no room
        self.made: list[str] = []
        self.here: dict[str, Runtime] = {}

    def load(self, entry: Entry, report: Report) -> Runtime:
        self.before(entry.id, report)
        self.here = {name: runtime for name, runtime in self.here.items() if not runtime._scheduler._worker._closed}
        if len(self.here) >= self.room:
            raise NoRoomError(f"{entry.title} needs more than is free", missing=self.missing)
        self.made.append(entry.id)
        loaded = tiny(MODELS[entry.id])
        facts = ModelFacts(**vars(loaded.facts) | {"model_id": entry.id, "title": entry.title})
        copied = type(loaded)(loaded.model, loaded.tokenizer, facts, loaded.device)
        self.here[entry.id] = Runtime(copied, catalog(), Settings())
        return self.here[entry.id]


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def hand(shop: Shop) -> ModelsAtHand:
    return ModelsAtHand(catalog(), started="first", offered=["second", "third"], loader=shop.load)


@pytest.fixture
def many(hand: ModelsAtHand) -> Iterator[ManyRuntimes]:
    assert hand.begin("first").runtime
    many = ManyRuntimes(hand)
    yield many
    many.shut_down()


def experiment(model: str = "first", **fields: Any) -> Experiment:
    given: dict[str, Any] = {"prompt": "the cat sat", "sampling": {"seed": 1}, "stop": {"max_new_tokens": 4}}
    return Experiment.model_validate({"version": 1, "model": model, **given, **fields})


def ids(many: ManyRuntimes, session: str) -> list[int]:
    for _ in many.run(session):
        pass
    trace = many.trace(session)
    assert trace is not None
    return [step.token_id for step in trace.steps(0)]


def test_only_the_first_is_loaded_and_each_other_when_it_is_wanted(many: ManyRuntimes, shop: Shop) -> None:
    assert shop.made == ["first"]
    assert many.hand.begin("second") is many.hand.begin("second")
    assert many.hand.begin("second").runtime.facts.model_id == "second"
    assert shop.made == ["first", "second"]
    assert many.hand.at_hand == ("first", "second")


def test_an_experiment_moves_its_session_to_its_model_and_back(many: ManyRuntimes) -> None:
    assert many.hand.begin("second").runtime
    session = many.open("visitor")
    assert many.facts_of(session).model_id == "first"
    many.start(session, experiment("second"))
    assert many.facts_of(session).architecture == "GPT2LMHeadModel"
    on_second = ids(many, session)
    assert many.hand.begin("first").runtime._sessions.remove(session) is None
    many.start(session, experiment("first"))
    on_first = ids(many, session)
    assert on_first != on_second
    other = many.open("another")
    many.start(other, experiment("second"))
    assert ids(many, other) == on_second


def test_a_model_that_is_not_here_is_refused_and_nothing_changes(many: ManyRuntimes, shop: Shop) -> None:
    session = many.open("visitor")
    many.start(session, experiment())
    made = ids(many, session)
    with pytest.raises(Refused, match="Second is not loaded; choose it at the top of the page"):
        many.start(session, experiment("second"))
    assert ids(many, session) == made
    assert shop.made == ["first"]


@pytest.mark.parametrize(
    "hostile", ["hidden", "", "../first", "org/name", "https://example.org", "first\x00", "x" * 999]
)
def test_what_is_not_offered_is_refused_without_asking_anything(many: ManyRuntimes, shop: Shop, hostile: str) -> None:
    for ask in (many.hand.begin, lambda name: many.ask({"model": name}, "model", {})):
        with pytest.raises(ExperimentError, match="is not loaded; this program runs 'first', 'second', 'third'"):
            ask(hostile)
    with pytest.raises(ExperimentError):
        many.parse({"version": 1, "model": hostile, "prompt": "x"})
    assert shop.made == ["first"]


def test_one_is_loaded_at_a_time_while_the_others_go_on(many: ManyRuntimes, shop: Shop) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(model_id: str, report: Report) -> None:
        report(Progress("downloading", 5, 10))
        begun.set()
        assert go_on.wait(PATIENCE)

    shop.before = wait
    second, third = many.hand.begin("second"), None
    assert begun.wait(PATIENCE)
    third = many.hand.begin("third")
    assert second.progress == Progress("downloading", 5, 10)
    assert not second.wait(0.01)
    assert third.progress == Progress("waiting")
    session = many.open("visitor")
    many.start(session, experiment())
    assert len(ids(many, session)) == 4
    go_on.set()
    assert second.wait(PATIENCE)
    assert third.wait(PATIENCE)
    assert shop.made == ["first", "second", "third"]


def test_the_least_recently_used_goes_where_memory_is_short_and_the_first_stays(many: ManyRuntimes, shop: Shop) -> None:
    shop.room = 2
    assert many.hand.begin("second").runtime
    session = many.open("visitor")
    many.start(session, experiment("second"))
    assert many.hand.begin("third").runtime
    assert many.hand.at_hand == ("first", "third")
    with pytest.raises(ModelPutAway):
        many.trace(session)
    assert many.facts_of(session).model_id == "second"
    assert many.open(session) == session
    assert many.facts_of(session).model_id == "first"
    assert many.hand.begin("second").runtime
    assert many.hand.at_hand == ("first", "second")


def test_a_model_that_can_never_fit_puts_no_other_away(many: ManyRuntimes, shop: Shop) -> None:
    assert many.hand.begin("second").runtime
    second = needed_bytes(tiny(MODELS["second"]).facts, "float32")
    shop.room, shop.missing = 2, second + 1
    with pytest.raises(Refused, match="needs more than is free"):
        _ = many.hand.begin("third").runtime
    assert many.hand.at_hand == ("first", "second")
    shop.missing = second
    assert many.hand.begin("third").runtime
    assert many.hand.at_hand == ("first", "third")


def test_a_running_model_is_never_put_away(many: ManyRuntimes, shop: Shop) -> None:
    shop.room = 2
    assert many.hand.begin("second").runtime
    session = many.open("visitor")
    many.start(session, experiment("second", stop={"max_new_tokens": 200}, sampling={"min_new_tokens": 200}))
    run = many.run(session)
    next(run)
    with pytest.raises(Refused, match="Third needs more than is free"):
        assert many.hand.begin("third").runtime
    many.stop(session)
    run.close()  # type: ignore[attr-defined]
    assert many.hand.begin("third").runtime


def test_a_load_that_failed_is_told_and_may_be_tried_again(many: ManyRuntimes, shop: Shop) -> None:
    def fail(model_id: str, report: Report) -> None:
        raise ModelError("the disk is full")

    shop.before = fail
    held = many.hand.begin("second")
    assert held.wait(PATIENCE)
    with pytest.raises(Refused, match="the disk is full"):
        assert held.runtime
    assert many.hand.loaded("second") is None
    shop.before = lambda model_id, report: None
    assert many.hand.begin("second").runtime.facts.model_id == "second"


def test_experiments_and_traces_without_a_page_run_on_the_model_they_name(many: ManyRuntimes, shop: Shop) -> None:
    trace = many.complete(many.parse(experiment("second").model_dump()))
    assert shop.made == ["first", "second"]
    _, found = many.ask(trace_to_json(trace), "model", {})
    assert found.parameters == tiny("gpt2").facts.parameters
    _, found = many.ask(experiment("third").model_dump(mode="json"), "model", {})
    assert found.parameters == tiny("qwen3").facts.parameters


@pytest.mark.parametrize("source", [None, [], "first", {}, {"model": 5}, {"experiment": 1, "events": []}])
def test_what_names_no_model_names_none(source: Any) -> None:
    assert model_of(source) == ""


def test_two_models_do_not_share_sessions_or_caches(many: ManyRuntimes) -> None:
    second = many.hand.begin("second").runtime
    sessions = [many.open(name) for name in ("a", "b")]
    many.start(sessions[0], experiment("first"))
    many.start(sessions[1], experiment("second"))
    alone = ids(many, sessions[0])
    assert ids(many, sessions[1]) != alone
    many.close(sessions[1])
    assert second._sessions.running == 0
    with pytest.raises(SessionGone):
        second.trace(sessions[1])
    assert ids(many, sessions[0]) == alone


def test_an_experiment_that_is_refused_leaves_no_session_on_its_model(many: ManyRuntimes) -> None:
    second = many.hand.begin("second").runtime
    session = many.open("visitor")
    many.start(session, experiment("first"))
    with pytest.raises(ExperimentError, match="max_new_tokens"):
        many.start(session, experiment("second", stop={"max_new_tokens": Settings().max_new_tokens + 1}))
    assert many.facts_of(session).model_id == "first"
    assert second._sessions.remove(session) is None
