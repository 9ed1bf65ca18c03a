"""Going back, choosing by hand, cancelling: any path ends in what its experiment alone gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.trace import Stepped, Stopped
from tests.engine.conversations import SAMPLED, experiment, finish, ids, told
from tests.engine.models import ROWS, tiny


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(["llama", "gpt2", "sliding", "hybrid"]), greedy=st.booleans())
def test_any_path_ends_in_the_trace_that_its_experiment_alone_gives(
    data: st.DataObject, name: str, greedy: bool
) -> None:
    loaded = tiny(name)
    value = experiment(
        follow_ups=["and the dog"],
        sampling=SAMPLED | {"do_sample": not greedy},
        stop={"max_new_tokens": 5, "stop_strings": ["at"]},
    )
    talk = Conversation(loaded, value)
    bits = name in {"llama", "gpt2"}
    for _ in range(data.draw(st.integers(1, 14))):
        match data.draw(st.sampled_from(["advance", "advance", "advance", "back", "force", "cancel", "release"])):
            case "advance":
                talk.advance()
            case "back":
                had = talk.turn is not None and bool(talk.turn.answer)
                assert talk.back() is had
            case "force" if talk.turn is not None:
                made = len(talk.turn.answer)
                step = data.draw(st.integers(0, made))
                ended = bool(talk.trace.stopped(talk.turn.index)) and step == made
                if not ended:
                    talk.force(step, data.draw(st.integers(0, ROWS - 1)))
            case "cancel":
                talk.cancel()
            case "release":
                talk.release()
                bits = False
    trace = finish(talk)
    alone = finish(Conversation(loaded, talk.experiment))
    if bits:
        assert told(trace.events) == told(alone.events)
    else:
        # A cache that was built anew gives logits that differ in the last digits, and has other positions to reuse.
        assert ids(trace) == ids(alone)
        assert [trace.answer(turn) for turn in range(2)] == [alone.answer(turn) for turn in range(2)]


def test_back_takes_the_newest_token_and_its_end(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    assert not talk.back()
    whole = told(finish(talk).events)
    assert talk.back()
    assert told(talk.trace.events) == whole[:-2]
    assert not talk.finished
    assert talk.turn is not None
    assert talk.turn.kv_tokens == len(talk.turn.prompt_ids) + 4
    while talk.back():
        pass
    assert [event.kind for event in talk.trace.events] == ["rendered", "prefilled"]
    assert told(finish(talk).events) == whole


def test_a_chosen_token_goes_into_the_experiment(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    free = finish(talk)
    talk.force(2, 77)
    assert [step.step for step in talk.trace.of(Stepped)] == [0, 1]
    assert talk.experiment.forced_token(0, 2) == 77
    steered = finish(talk)
    assert ids(steered)[:2] == ids(free)[:2]
    assert (steered.steps(0)[2].token_id, steered.steps(0)[2].forced) == (77, True)
    # A choice on the branch that is left goes with it.
    talk.force(4, 78)
    talk.force(1, 79)
    assert [(item.step, item.token_id) for item in talk.experiment.forced] == [(1, 79)]
    # Choosing what would have come anyway takes the choice back.
    finish(talk)
    talk.force(1, free.steps(0)[1].token_id)
    assert talk.experiment.forced == ()
    assert ids(finish(talk)) == ids(free)


def test_what_cannot_be_chosen_is_refused_and_nothing_changes(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    with pytest.raises(ExperimentError, match="0 tokens so far"):
        talk.force(0, 5)
    trace = finish(talk)
    with pytest.raises(ExperimentError, match=str(ROWS - 1)):
        talk.force(1, ROWS)
    with pytest.raises(ExperimentError, match="has ended"):
        talk.force(6, 5)
    with pytest.raises(ExperimentError):
        talk.force(-1, 5)
    assert talk.trace is trace


def test_a_token_outside_the_grammar_is_an_error_that_can_be_taken_back(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(grammar={"kind": "regex", "source": "[0-9]{6}"}))
    talk.advance()
    talk.advance()
    before = talk.turn._generator.get_state()  # type: ignore[union-attr]
    letter = llama.tokenizer.encode("x", add_special_tokens=False)[0]
    talk.force(1, letter)
    stopped = talk.advance()[-1]
    assert isinstance(stopped, Stopped)
    assert stopped.reason == "error"
    assert "grammar does not allow" in stopped.evidence["message"]
    assert talk.cache_bytes == 0
    assert torch.equal(talk.turn._generator.get_state(), before)  # type: ignore[union-attr]
    digit = llama.tokenizer.encode("7", add_special_tokens=False)[0]
    talk.force(1, digit)
    trace = finish(talk)
    assert trace.stopped(0).reason in {"grammar_end", "length"}  # type: ignore[union-attr]
    assert ids(trace) == ids(finish(Conversation(llama, talk.experiment)))


def test_cancel_and_go_on(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(stop={"max_new_tokens": 6, "stop_strings": ["zzzz"]}))
    talk.cancel()
    assert talk.trace.events == ()
    for _ in range(3):
        talk.advance()
    before = talk.trace.events
    talk.cancel()
    talk.cancel()
    stopped = talk.trace.stopped(0)
    assert stopped is not None
    assert (stopped.reason, stopped.evidence) == ("cancelled", {"step": 2})
    assert talk.finished
    assert talk.advance()[0].kind == "stepped"
    assert talk.trace.events[: len(before)] == before
    assert told(finish(talk).events) == told(finish(Conversation(llama, talk.experiment)).events)


@pytest.mark.parametrize("name", ["llama", "hybrid"])
@pytest.mark.parametrize("steps", [0, 2])
def test_a_cache_given_back_is_whole_again_when_the_first_token_is_chosen(name: str, steps: int) -> None:
    whole = finish(Conversation(tiny(name), experiment()))
    talk = Conversation(tiny(name), experiment())
    for _ in range(1 + steps):
        talk.advance()
    talk.release()
    for _ in range(steps):
        talk.back()
    first = next(event for event in talk.advance() if isinstance(event, Stepped))
    assert first.kv_tokens == first.position
    assert first.kv_bytes == talk.loaded.facts.kv_bytes(first.position) or name == "hybrid"
    assert ids(finish(talk)) == ids(whole)


@pytest.mark.parametrize("token_id", [-1, ROWS])
def test_choosing_an_id_that_the_model_lacks_changes_nothing(token_id: int) -> None:
    talk = Conversation(tiny("llama"), experiment())
    for _ in range(3):
        talk.advance()
    before = talk.trace
    with pytest.raises(ExperimentError, match="token_id"):
        talk.force(0, token_id)
    assert talk.trace is before
