"""Turns that reuse the cache against the same turns computed cold, over random chats with edits."""

import random
from typing import Any

import pytest
import torch

from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.probes.cold_turn import cold_turn
from engine.trace import Trace
from tests.engine.conversations import experiment, finish, ids
from tests.engine.models import CHATML, WINDOW, tiny

WORDS = ("the cat", "sat on", "the mat", "Paris?", "你好", "🙂", "12 + 3", " ", "What is seen", "<|im_end|>", "dog\n")
#: Largest |Δlogit| in float32 between two orders of the same sums, as the page states it.
TOLERANCE = 1e-3


def said(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 5)))


def random_settings(rng: random.Random) -> dict[str, Any]:
    sampling: dict[str, Any] = {"do_sample": rng.random() < 0.7, "seed": rng.randrange(1000)}
    if rng.random() < 0.5:
        sampling |= {"temperature": 0.8, "top_k": 30}
    if rng.random() < 0.4:
        sampling |= {"repetition_penalty": 1.2}
    return {
        "sampling": sampling,
        "stop": {"max_new_tokens": rng.randint(2, 7), "stop_strings": ["e"][: rng.randrange(2)]},
    }


def random_chat(loaded: LoadedModel, seed: int, *, turns: int | None = None, **fields: Any) -> Conversation:
    """A chat of 2 to 6 turns in which tokens are taken back, chosen by hand, and turns cancelled."""
    rng = random.Random(seed)
    turns = turns or rng.randint(2, 6)
    system = [{"role": "system", "content": said(rng)}] if rng.random() < 0.5 else []
    opening = [*system, {"role": "user", "content": said(rng)}]
    talk = Conversation(loaded, experiment(messages=opening, **random_settings(rng) | fields))
    for turn in range(turns):
        if turn:
            talk.say(said(rng))
        talk.advance()
        for _ in range(rng.randint(1, 4)):
            talk.advance()
        edit = rng.choice(("none", "back", "force", "cancel"))
        made = len(talk.trace.steps(turn))
        if edit == "back":
            talk.back()
        elif edit == "force" and made and talk.trace.stopped(turn) is None:
            talk.force(rng.randrange(made), int(talk.trace.steps(turn)[0].candidate_ids[rng.randrange(3)]))
        if edit == "cancel" and talk.trace.stopped(turn) is None:
            talk.cancel()
        else:
            while talk.trace.stopped(turn) is None:
                talk.advance()
    if not talk.finished or talk.trace.stopped(turns - 1).reason == "cancelled":  # type: ignore[union-attr]
        finish(talk)
    return talk


def run_cold(loaded: LoadedModel, value: Experiment) -> Trace:
    """The same experiment with the cache given back after every turn."""
    talk = Conversation(loaded, value)
    while events := talk.advance():
        if events[-1].kind == "stopped":
            talk.release()
    return talk.trace


def check(loaded: LoadedModel, talk: Conversation) -> int:
    """Everything that must hold of a chat's reuse; gives the positions that were reused."""
    trace, cold = talk.trace, run_cold(loaded, talk.experiment)
    assert ids(cold) == ids(trace)
    total = 0
    for turn in range(trace.turns):
        rendered, prefilled, steps = trace.rendered(turn), trace.prefilled(turn), trace.steps(turn)
        assert rendered is not None
        assert prefilled is not None
        other = cold.rendered(turn)
        assert other is not None
        assert (other.reused, other.cached, other.parted) == (0, 0, None)
        assert other.token_ids.tolist() == rendered.token_ids.tolist()
        # The identities by which each number can be had from the others.
        count = len(rendered.token_ids)
        assert rendered.reused + (prefilled.last - prefilled.first + 1) == count
        assert prefilled.first == rendered.reused
        assert rendered.dropped == rendered.cached - rendered.reused
        if turn:
            before, answer = trace.rendered(turn - 1), trace.steps(turn - 1)
            assert before is not None
            held = [*before.token_ids.tolist(), *(step.token_id for step in answer[:-1])]
            assert rendered.cached == len(held)
            assert held[: rendered.reused] == rendered.token_ids.tolist()[: rendered.reused]
            if rendered.parted is not None:
                place = rendered.parted.position
                assert held[:place] == rendered.token_ids.tolist()[:place]
                assert (held[place], rendered.token_ids[place]) == (rendered.parted.cached_id, rendered.parted.new_id)
                assert held[place] != rendered.token_ids[place]
        # transformers' own model, which never saw a cache.
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([rendered.token_ids.tolist()])).logits[0, -1].float()
        first = steps[0]
        own = torch.tensor(first.logits[0])
        assert (logits[first.candidate_ids.tolist()] - own).abs().max() < TOLERANCE
        total += rendered.reused
    return total


def test_fifty_random_chats_with_edits_equal_the_same_chats_cold(architecture: LoadedModel) -> None:
    reused = [check(architecture, random_chat(architecture, seed)) for seed in range(50)]
    assert sum(count > 0 for count in reused) > 45


@pytest.mark.parametrize("name", ["sliding", "mixed"])
def test_models_with_a_window_reuse_all_or_nothing_past_it(name: str) -> None:
    loaded = tiny(name)
    refused = 0
    for seed in range(15):
        talk = random_chat(loaded, seed)
        check(loaded, talk)
        for turn in range(1, talk.trace.turns):
            rendered = talk.trace.rendered(turn)
            assert rendered is not None
            if rendered.cached >= WINDOW:
                assert rendered.reused in {0, rendered.cached}
            if rendered.refused is not None:
                assert rendered.reused == 0
                assert f"beyond its window of {WINDOW}" in rendered.refused
                refused += 1
    assert refused > 5


def test_random_chats_on_the_embedded_model(embedded: LoadedModel) -> None:
    for seed in range(3):
        sampling = {"temperature": 0.8, "top_k": 20, "seed": seed}
        talk = random_chat(embedded, seed, turns=2 + seed % 2, sampling=sampling, stop={"max_new_tokens": 4})
        assert check(embedded, talk) > 20
        found = cold_turn(talk)
        assert found.first_difference is None
        assert found.max_difference < TOLERANCE


#: As thinking models' templates do: what a former answer thought is left out of the history.
THINKING = CHATML.replace(
    "message['content'] +",
    "(message['content'].split('</think>')[-1] if message['role'] == 'assistant' else message['content']) +",
)
#: What the template writes at the very start changes with every message.
COUNTING = "{{- '<|im_start|>system\\n' ~ messages|length ~ ' messages<|im_end|>\\n' -}}" + CHATML


@pytest.fixture
def template(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives the small model another template for one test."""
    return lambda source: monkeypatch.setattr(llama.tokenizer, "chat_template", source)


def two_turns(loaded: LoadedModel, answer: str) -> Trace:
    told = loaded.tokenizer.encode(answer, add_special_tokens=False)
    forced = [{"step": step, "token_id": token} for step, token in enumerate([*told, loaded.facts.eos_ids[0]])]
    return finish(Conversation(loaded, experiment(follow_ups=["go on"], forced=forced, stop={"max_new_tokens": 40})))


def test_a_template_that_leaves_out_thoughts_breaks_the_reuse_where_they_began(
    llama: LoadedModel, template: Any
) -> None:
    kept = two_turns(llama, "<think>the dog</think>the cat")
    template(THINKING)
    left_out = two_turns(llama, "<think>the dog</think>the cat")
    for trace, whole in ((kept, True), (left_out, False)):
        first, second = trace.rendered(0), trace.rendered(1)
        assert first is not None
        assert second is not None
        prompt = len(first.token_ids)
        assert second.cached == prompt + len(trace.steps(0)) - 1
        if whole:
            assert (second.reused, second.parted) == (second.cached, None)
        else:
            assert second.reused == prompt
            assert second.parted is not None
            assert second.parted.position == prompt
            assert second.parted.cached_id == llama.tokenizer.encode("<think>")[0]
            assert second.parted.new_id == llama.tokenizer.encode("the")[0]


def test_a_template_that_counts_its_messages_breaks_the_reuse_at_the_count(llama: LoadedModel, template: Any) -> None:
    template(COUNTING)
    second = two_turns(llama, "the cat").rendered(1)
    assert second is not None
    assert second.parted is not None
    heading = llama.tokenizer.encode("<|im_start|>system\n", add_special_tokens=False)
    assert second.reused == second.parted.position == len(heading)
    assert (second.token_bytes[len(heading)], second.dropped) == (b"3", second.cached - len(heading))


def test_a_cache_given_back_is_none_to_compare_with(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(follow_ups=["go on"]))
    while talk.trace.stopped(0) is None:
        talk.advance()
    talk.release()
    second = finish(talk).rendered(1)
    assert second is not None
    assert (second.reused, second.cached, second.dropped, second.parted, second.refused) == (0, 0, 0, None, None)


def test_the_cold_turn_says_what_reuse_saved_and_leaves_the_run_as_it_was(architecture: LoadedModel) -> None:
    talk = random_chat(architecture, 7, turns=3)
    trace, held, state = talk.trace, talk.turn.cached_ids, talk._generator.get_state()  # type: ignore[union-attr]
    found = cold_turn(talk)
    assert talk.trace is trace
    assert talk.turn.cached_ids == held  # type: ignore[union-attr]
    assert torch.equal(talk._generator.get_state(), state)
    rendered = trace.rendered(2)
    assert rendered is not None
    assert (found.turn, found.reused, found.positions) == (2, rendered.reused, len(rendered.token_ids))
    assert found.reused > 0
    assert found.ours == found.cold == tuple(step.token_id for step in trace.steps(2))
    assert found.first_difference is None
    assert found.max_difference < TOLERANCE
    assert found.same_best
    assert found.again
    assert found.warm_seconds > 0
    assert found.cold_seconds > 0


def test_a_cache_that_cannot_be_cut_back_leaves_the_time_as_it_was() -> None:
    talk = random_chat(tiny("sliding"), 1, turns=2)
    rendered, prefilled = talk.trace.rendered(1), talk.trace.prefilled(1)
    assert rendered is not None
    assert prefilled is not None
    assert rendered.reused == rendered.cached > WINDOW
    found = cold_turn(talk)
    assert (found.again, found.reused, found.warm_seconds) == (False, rendered.reused, prefilled.seconds)


def test_a_branch_is_compared_with_its_prefill_made_again(architecture: LoadedModel) -> None:
    talk = random_chat(architecture, 7, turns=3)
    branch = Conversation.resumed(architecture, talk.trace)
    first, found = cold_turn(talk), cold_turn(branch)
    assert branch.turn is not None
    assert branch.turn.cache is None
    assert found.again
    assert 0 < found.reused == first.reused < found.positions
    assert found.ours == found.cold == first.ours
    assert found.max_difference < TOLERANCE
    assert found.warm_seconds > 0
    branch.back()
    finish(branch)
    assert cold_turn(branch).cold == first.ours


def test_a_branch_whose_first_turn_reused_nothing_is_its_own_cold_turn(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment())
    trace = finish(talk)
    found = cold_turn(Conversation.resumed(llama, trace))
    prefilled = trace.prefilled(0)
    assert prefilled is not None
    assert (found.reused, found.again, found.warm_seconds) == (0, False, prefilled.seconds)
    assert (found.max_difference, found.first_difference) == (0.0, None)


@pytest.mark.parametrize("positions", ["go_on", "restart"])
def test_a_branch_in_a_window_is_compared_too(llama: LoadedModel, positions: str) -> None:
    context = {"strategy": "sliding_window", "max_tokens": 30, "positions": positions}
    talk = Conversation(llama, experiment(context=context, follow_ups=["and the dog"]))
    finish(talk)
    first, found = (cold_turn(one) for one in (talk, Conversation.resumed(llama, talk.trace)))
    assert found.ours == first.ours
    assert found.cold == first.cold
    assert abs(found.max_difference - first.max_difference) < TOLERANCE


def test_the_cold_turn_names_the_step_at_which_a_broken_cache_shows(llama: LoadedModel) -> None:
    talk = Conversation(llama, experiment(follow_ups=["and the dog"], sampling={"do_sample": False}))
    while talk.trace.stopped(0) is None:
        talk.advance()
    assert talk.turn is not None
    assert talk.turn.cache is not None
    with torch.inference_mode():
        for layer in talk.turn.cache.layers:
            layer.values.mul_(-3.0)  # type: ignore[union-attr]
    trace = finish(talk)
    found = cold_turn(talk)
    assert found.max_difference > TOLERANCE
    assert found.first_difference is not None
    assert found.ours[: found.first_difference] == found.cold[: found.first_difference]
    assert tuple(step.token_id for step in trace.steps(1)) == found.ours
