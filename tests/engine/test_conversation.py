"""Turns and reuse: the trace is what the experiment says."""

import weakref

import pytest
import torch

from engine import conversation as conversation_module
from engine import kv_cache
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from tests.engine.conversations import SAMPLED, experiment, finish, ids, run, told
from tests.engine.models import ROWS, tiny


def test_one_piece_of_work_at_a_time(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(follow_ups=["and the dog"]))
    assert talk.trace.events == ()
    assert not talk.finished
    kinds = []
    while events := talk.advance():
        kinds.append([event.kind for event in events])
    turn = [["rendered", "prefilled"], *[["stepped"]] * 5, ["stepped", "stopped"]]
    assert kinds == turn * 2
    assert talk.finished
    assert talk.advance() == ()
    assert talk.trace.turns == 2
    assert talk.trace.versions["torch"] == torch.__version__


def test_run_gives_the_events_of_the_trace(llama: LoadedModel) -> None:
    value = experiment(follow_ups=["and the dog"])
    assert told(tuple(run(llama, value))) == told(finish(Conversation(llama, value)).events)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "sliding", "mixed", "hybrid"])
def test_a_second_turn_equals_a_cold_run_of_the_same_history(name: str) -> None:
    loaded = tiny(name)
    warm = finish(Conversation(loaded, experiment(follow_ups=["and the dog"], sampling={"do_sample": False})))
    history = [
        {"role": "user", "content": "the cat"},
        {"role": "assistant", "content": warm.answer(0)},
        {"role": "user", "content": "and the dog"},
    ]
    cold = finish(Conversation(loaded, experiment(messages=history, sampling={"do_sample": False})))
    rendered = warm.rendered(1)
    assert rendered is not None
    assert rendered.token_ids.tolist() == cold.rendered(0).token_ids.tolist()  # type: ignore[union-attr]
    assert [step.token_id for step in warm.steps(1)] == [step.token_id for step in cold.steps(0)]
    for left, right in zip(warm.steps(1), cold.steps(0), strict=True):
        assert left.kv_tokens == right.kv_tokens
        assert sorted(left.candidate_ids) == sorted(right.candidate_ids)
    prefilled = warm.prefilled(1)
    assert prefilled is not None
    assert prefilled.first == rendered.reused
    assert prefilled.last == len(rendered.token_ids) - 1
    if "sliding" in loaded.facts.layer_kinds:
        # Past its window such a layer has no way back: all of the cache is reused, or nothing.
        assert rendered.reused in {0, warm.steps(0)[-1].kv_tokens}
    elif "stateful" not in loaded.facts.layer_kinds:
        assert rendered.reused > 0


def test_reuse_ends_at_the_first_differing_pair(llama: LoadedModel) -> None:
    # An answer of bytes that are no text renders otherwise than it was sampled.
    half = llama.tokenizer.encode("你", add_special_tokens=False)[0]
    trace = finish(Conversation(llama, experiment(follow_ups=["go on"], forced=[{"step": 2, "token_id": half}])))
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    fed = [*first.token_ids.tolist(), *(step.token_id for step in trace.steps(0))][:-1]
    common = kv_cache.common_prefix(fed, second.token_ids.tolist())
    assert second.reused == common < len(fed)
    assert second.parted is not None
    assert (second.parted.position, second.parted.cached_id) == (common, fed[common])
    assert second.parted.new_id == second.token_ids[common] != fed[common]


def test_a_history_that_only_grows_is_reused_whole(llama: LoadedModel) -> None:
    words = llama.tokenizer.encode("the mat", add_special_tokens=False)
    forced = [{"step": step, "token_id": token} for step, token in enumerate([*words, llama.facts.eos_ids[0]])]
    trace = finish(Conversation(llama, experiment(follow_ups=["go on"], forced=forced)))
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    assert trace.answer(0) == "the mat"
    assert second.reused == len(first.token_ids) + len(words)
    assert second.parted is None


def test_a_follow_up_after_the_end(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    with pytest.raises(ExperimentError, match="has not ended"):
        talk.say("too early")
    finish(talk)
    talk.say("and the dog")
    assert not talk.finished
    assert talk.experiment.follow_ups == ("and the dog",)
    trace = finish(talk)
    assert trace.turns == 2
    assert told(trace.events) == told(finish(Conversation(llama, talk.experiment)).events)


def test_a_follow_up_after_a_cancelled_turn_is_replayed_by_the_experiment(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(stop={"max_new_tokens": 30}))
    for _ in range(5):
        talk.advance()
    talk.cancel()
    answer = talk.trace.answer(0)
    talk.say("and the dog")
    trace = finish(talk)
    assert trace.answer(0) == answer
    assert trace.stopped(0).reason == "eos"  # type: ignore[union-attr]
    assert trace.turns == 2
    assert told(trace.events) == told(finish(Conversation(llama, talk.experiment)).events)


def test_a_raw_prompt_has_no_second_turn(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(prompt="the"))
    trace = finish(talk)
    with pytest.raises(ExperimentError, match="raw prompt has no turns"):
        talk.say("more")
    assert talk.trace is trace


def test_interleaved_runs_equal_their_solo_runs(llama: LoadedModel) -> None:
    values = [experiment(sampling=SAMPLED | {"seed": seed}) for seed in range(16)]
    before = torch.get_rng_state()
    alone = [told(finish(Conversation(llama, value)).events) for value in values]
    talks = [Conversation(llama, value) for value in values]
    while not all(talk.finished for talk in talks):
        for talk in talks:
            talk.advance()
        torch.rand(3)  # somebody else's use of the global generator
    assert [told(talk.trace.events) for talk in talks] == alone
    assert len({tuple(ids(talk.trace)) for talk in talks}) > 10
    torch.set_rng_state(before)


def test_a_released_conversation_holds_no_cache(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    for _ in range(4):
        talk.advance()
    assert talk.cache_bytes > 0
    assert talk.turn is not None
    cache = weakref.ref(talk.turn.cache)  # type: ignore[arg-type]
    talk.release()
    assert talk.cache_bytes == 0
    assert cache() is None
    assert ids(finish(talk)) == ids(finish(Conversation(llama, experiment())))


def test_versions_name_every_library_that_decides_a_token() -> None:
    assert set(conversation_module.versions()) == {
        "python",
        "torch",
        "transformers",
        "tokenizers",
        "llguidance",
        "numpy",
        "simpleeval",
        "jsonschema",
    }


def test_where_no_candidate_is_left_none_is_forced(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment(sampling={"suppress_tokens": list(range(ROWS))}))
    finish(conversation)
    with pytest.raises(ExperimentError, match="step"):
        conversation.force(0, 65)
    assert conversation.experiment.forced == ()


def test_an_answer_under_a_short_mask_is_computed_anew_in_the_next_turn(llama: LoadedModel) -> None:
    """Its keys were computed under the mask of its own prompt; built anew they would be under that of the next."""
    value = experiment(mistake="mask_not_extended", follow_ups=("and the dog?",))
    going, cold = Conversation(llama, value), Conversation(llama, value)
    for conversation in (going, cold):
        while conversation.trace.stopped(0) is None:
            conversation.advance()
    cold.release()
    rendered = finish(going).rendered(1)
    assert rendered is not None
    assert rendered.reused == 0
    for one, other in zip(going.trace.steps(1), finish(cold).steps(1), strict=True):
        assert one.logits.tobytes() == other.logits.tobytes()
