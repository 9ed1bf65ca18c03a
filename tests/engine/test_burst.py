"""A burst goes on with a run from its trace alone, and makes what the run would have made."""

import pickle

import numpy as np
import pytest

from engine.answers.grid import grid_of
from engine.asking import parameters
from engine.burst import Failure, ask, burst, grid, recall
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.grid import Grid
from engine.probes.table import PROBES
from engine.refusals import Refused
from engine.said import said
from engine.trace import Stepped, Trace
from tests.engine import callers, conversations
from tests.engine.conversations import experiment, finish, ids, told
from tests.engine.models import tiny

FOLLOWED = {"follow_ups": ["and then", "more"], "stop": {"max_new_tokens": 7}}


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def in_bursts(loaded, what, tokens: int) -> Trace:
    """The run to its end in bursts of so many tokens; nothing but pickled traces goes from one to the next."""
    conversation = Conversation(loaded, what)
    while True:
        pieces = list(burst(loaded, pickled(conversation.trace), tokens=tokens, seconds=60))
        for piece in pieces:
            conversation.absorb(pickled(piece).events)
        if not pieces or conversation.finished:
            return conversation.trace


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "sliding", "hybrid"])
@pytest.mark.parametrize("tokens", [0, 1, 3, 100])
def test_bursts_make_the_events_of_one_run(name, tokens):
    loaded = tiny(name)
    what = experiment(**FOLLOWED)
    whole = finish(Conversation(loaded, what))
    parts = in_bursts(loaded, what, tokens)
    assert told(parts.events, bits=False) == told(whole.events, bits=False)
    for ours, theirs in zip(parts.events, whole.events, strict=True):
        assert getattr(ours, "shapes", None) == getattr(theirs, "shapes", None)
        if isinstance(ours, Stepped):
            assert ours.draw.u == pytest.approx(theirs.draw.u, abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_seed_the_same_ids_are_drawn(llama, seed):
    sampling = {"temperature": 1.5, "top_k": 0, "top_p": 0.98, "seed": seed}
    what = experiment(sampling=sampling, stop={"max_new_tokens": 24})
    assert ids(in_bursts(llama, what, 5)) == ids(finish(Conversation(llama, what)))


def test_the_default_model_says_the_same_in_bursts(embedded):
    what = experiment(
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        sampling={"temperature": 0.7, "top_k": 20, "seed": 1},
        stop={"max_new_tokens": 12},
    )
    assert ids(in_bursts(embedded, what, 3)) == ids(finish(Conversation(embedded, what)))


@pytest.mark.parametrize("positions", ["go_on", "restart"])
def test_a_window_that_has_moved_on_goes_on_from_where_it_stood(llama, positions):
    context = {"strategy": "sliding_window", "max_tokens": 24, "positions": positions}
    what = experiment(context=context, stop={"max_new_tokens": 30}, follow_ups=["go on"])
    whole = finish(Conversation(llama, what))
    assert told(in_bursts(llama, what, 4).events, bits=False) == told(whole.events, bits=False)


def test_calls_of_tools_run_between_two_bursts():
    loaded = callers.caller()
    what = callers.experiment([callers.SUM, "it is 5"])
    whole = finish(Conversation(loaded, what))
    parts = in_bursts(loaded, what, 1)
    assert ids(parts) == ids(whole)
    assert callers.results(parts) == callers.results(whole) == ["2+3 = 5"]
    assert callers.reasons(parts) == callers.reasons(whole)


def test_a_turn_that_was_forced_and_cancelled_goes_on(llama):
    conversation = Conversation(llama, experiment(stop={"max_new_tokens": 8}))
    for _ in range(5):
        conversation.advance()
    conversation.force(2, 50)
    conversation.advance()
    conversation.cancel()
    left = pickled(conversation.trace)
    whole = finish(conversation)
    pieces = list(burst(llama, left, tokens=100, seconds=60))
    made = [event for piece in pieces for event in piece.events]
    assert told(tuple(made), bits=False) == told(whole.events[len(left.events) - 1 :], bits=False)
    assert pieces[-1].last


def test_a_burst_ends_by_tokens_and_by_time(llama):
    what = Trace(experiment(stop={"max_new_tokens": 50}, sampling={"seed": 1, "min_new_tokens": 50}), llama.facts, {})
    assert [piece.last for piece in burst(llama, what, tokens=3, seconds=60)] == [False, False, False, True]
    assert [piece.last for piece in burst(llama, what, tokens=0, seconds=60)] == [True]
    clock = iter(range(100)).__next__
    assert len(list(burst(llama, what, tokens=50, seconds=4, clock=clock))) == 4
    done = finish(Conversation(llama, experiment()))
    assert list(burst(llama, done, tokens=3, seconds=60)) == []


def test_what_is_called_twice_gives_the_same_twice(llama):
    """A process that is kept between two calls remembers nothing that shows."""
    left = Conversation(llama, experiment())
    left.advance()
    first, second = (list(burst(llama, left.trace, tokens=9, seconds=60)) for _ in range(2))
    assert [told(piece.events) for piece in first] == [told(piece.events) for piece in second]


@pytest.mark.parametrize("mistake", [None, "history_reencoded", "mask_not_extended", "eos_not_watched"])
def test_a_recalled_run_holds_the_cache_that_it_had(llama, mistake):
    whole = Conversation(llama, experiment(**FOLLOWED, mistake=mistake))
    while whole.advance():
        again = recall(llama, pickled(whole.trace), None)
        assert (again.turn.kv_tokens, again.cache_bytes) == (whole.turn.kv_tokens, whole.cache_bytes)
        assert again.turn.cached_ids == whole.turn.cached_ids
        assert again.random_state.equal(whole.random_state)
        assert again.turn.held_text() == whole.turn.held_text()


NEEDS = {
    "attention_matrix": {"layer": 0, "head": 0},
    "arithmetic": {"formula": "a + b"},
    "chances": {"token_ids": [5, 6]},
    "distribution": {"step": 1},
    "merges": {"text": "the cat"},
    "padding": {"text": "the"},
    "policy": {"strategy": "keep_system"},
    "relative_phase": {"layer": 0, "head": 0},
    "tokenizers": {"text": "the cat"},
    "uncached": {"step": 1},
}


@pytest.mark.parametrize("name", PROBES)
def test_every_probe_s_answer_can_be_sent(name):
    loaded = tiny("gpt2" if name == "positions" else "llama")
    trace = pickled(finish(Conversation(loaded, experiment(**FOLLOWED))))
    wanted = {key: value for key, value in NEEDS.get(name, {}).items() if key in parameters(PROBES[name])}
    found = pickled(ask(loaded, trace, name, wanted, checked=False))
    assert not isinstance(found, Failure), found
    asked, answer = found
    assert set(wanted) <= set(asked)
    assert type(answer).__module__.startswith("engine.")


def test_a_probe_sees_what_it_sees_in_one_process(llama):
    conversation = Conversation(llama, experiment(**FOLLOWED))
    finish(conversation)
    for name in ("lens", "residual", "attention"):
        _, ours = ask(llama, pickled(conversation.trace), name, {"position": 9}, checked=False)
        theirs = PROBES[name](conversation, position=9)
        compared = 0
        for field, value in vars(theirs).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_allclose(getattr(ours, field), value, atol=2e-4)
                compared += 1
        assert compared


def test_refusals_come_back_as_what_they_were(llama):
    trace = finish(Conversation(llama, experiment()))
    found = pickled(ask(llama, trace, "lens", {"layer": 99}, checked=False))
    assert isinstance(found, Failure)
    error = found.error()
    assert isinstance(error, ExperimentError)
    assert error.path == "layer"
    assert isinstance(Failure.of(Refused("not now")).error(), Refused)
    with pytest.raises(Refused, match="not now"):
        raise Failure.of(Refused("not now")).error()


def test_a_grid_in_a_burst_is_the_grid(llama):
    what = conversations.experiment(stop={"max_new_tokens": 5})
    results = list(grid(llama, what, grid_of([0.7, 1.3], [1, 2]), seconds=60))
    assert results[-1].done
    direct = Grid(llama, what, grid_of([0.7, 1.3], [1, 2]))
    while direct.advance():
        pass
    ours, theirs = pickled(results[-1]).cells, direct.result().cells
    assert [cell.token_ids for cell in ours] == [cell.token_ids for cell in theirs]
    assert len(list(grid(llama, what, grid_of([0.7], [1]), seconds=0))) == 0


def test_a_refusal_comes_back_with_its_words_for_other_languages():
    sentence = said("nothing_started")
    error = pickled(Failure.of(Refused(sentence))).error()
    assert (str(error), error.args[0].key) == (sentence, "nothing_started")
