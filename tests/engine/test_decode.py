"""One turn's loop: what each step is fed, how a turn ends, the classic mistakes, the way back."""

from typing import Any

import pytest
import torch
from transformers import StopStringCriteria

from engine.conversation import Conversation
from engine.decode import Turn
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs
from engine.trace import Event, Prefilled, Stepped, Stopped
from tests.engine.conversations import finish, run
from tests.engine.models import ROWS, tiny

PROMPT = "the cat sat on"


def experiment(**fields: Any) -> Experiment:
    sampling = {"do_sample": False, "suppress_tokens": list(tiny("llama").facts.eos_ids)} | fields.pop("sampling", {})
    return Experiment.model_validate(
        {"version": 1, "model": "tiny", "prompt": PROMPT, "sampling": sampling, "stop": {"max_new_tokens": 10}} | fields
    )


def events(loaded: LoadedModel, **fields: Any) -> list[Event]:
    return list(run(loaded, experiment(**fields)))


def steps(found: list[Event]) -> list[Stepped]:
    return [event for event in found if isinstance(event, Stepped)]


def stopped(found: list[Event]) -> Stopped:
    assert isinstance(found[-1], Stopped)
    return found[-1]


def ids(found: list[Event]) -> list[int]:
    return [step.token_id for step in steps(found)]


def by_hand(loaded: LoadedModel, count: int) -> list[int]:
    """Ten greedy steps the slow way: everything again each time, no cache, no class of ours."""
    prompt = loaded.tokenizer.encode(PROMPT)
    tokens = list(prompt)
    for _ in range(count):
        with torch.inference_mode():
            logits = loaded.model(torch.tensor([tokens])).logits[0, -1]
            logits[list(loaded.facts.eos_ids)] = -torch.inf
        tokens.append(int(logits.argmax()))
    return tokens[len(prompt) :]


def test_cached_equals_uncached_for_ten_greedy_steps(architecture: LoadedModel) -> None:
    assert ids(events(architecture)) == by_hand(architecture, 10)


def test_greedy_steps_share_one_state_of_the_generator(llama: LoadedModel) -> None:
    for do_sample, states in ((False, 1), (True, 10)):
        conversation = Conversation(llama, experiment(sampling={"do_sample": do_sample}))
        finish(conversation)
        assert conversation.turn is not None
        assert len({id(conversation.turn.random_state(step)) for step in range(10)}) == states


def test_what_prefill_and_decode_are_fed(llama: LoadedModel) -> None:
    found = events(llama)
    n = len(llama.tokenizer.encode(PROMPT))
    heads, width = llama.facts.kv_heads, llama.facts.head_dim
    prefilled = next(event for event in found if isinstance(event, Prefilled))
    assert (prefilled.first, prefilled.last, prefilled.kv_tokens) == (0, n - 1, n)
    assert prefilled.shapes == {
        "input_ids": (1, n),
        "attention_mask": (1, n),
        "position_ids": (1, n),
        "logits": (1, 1, ROWS),
        "keys": (1, heads, n, width),
        "values": (1, heads, n, width),
    }
    first, *later = steps(found)
    assert first.shapes == prefilled.shapes
    assert first.seconds == 0
    for step in later:
        assert step.shapes["input_ids"] == step.shapes["position_ids"] == (1, 1)
        assert step.shapes["attention_mask"] == (1, n + step.step)
        assert step.shapes["keys"] == (1, heads, n + step.step, width)
        assert step.seconds > 0
    for step in steps(found):
        assert step.position == n + step.step
        assert step.kv_tokens == n + step.step
        assert step.kv_bytes == llama.facts.kv_bytes(n + step.step)
        assert step.draw is None
        assert not step.forced


def test_the_length_ends_a_turn(llama: LoadedModel) -> None:
    found = events(llama, stop={"max_new_tokens": 3})
    assert len(steps(found)) == 3
    assert stopped(found).reason == "length"
    assert stopped(found).evidence["limit"] == "max_new_tokens"


def test_an_end_of_sequence_token_ends_a_turn_and_may_be_overlooked(llama: LoadedModel) -> None:
    eos = llama.facts.eos_ids[1]
    forced = [{"step": 2, "token_id": eos}]
    found = events(llama, forced=forced)
    assert stopped(found).reason == "eos"
    assert stopped(found).evidence["token_id"] == eos
    assert len(steps(found)) == 3
    overlooked = events(llama, forced=forced, mistake="eos_not_watched")
    assert ids(overlooked)[:3] == ids(found)
    assert len(steps(overlooked)) == 10
    assert stopped(overlooked).reason == "length"


def test_a_stop_string_ends_a_turn_and_is_not_shown(llama: LoadedModel) -> None:
    forced = [
        {"step": step, "token_id": token}
        for step, token in enumerate(llama.tokenizer.encode("go on END now", add_special_tokens=False))
    ]
    found = events(llama, forced=forced, stop={"max_new_tokens": 30, "stop_strings": ["n END"]})
    assert stopped(found).reason == "stop_string"
    assert "".join(step.text for step in steps(found)) + stopped(found).text == "go o"
    assert any(step.held_bytes for step in steps(found))


def test_a_control_mark_in_a_stop_string_ends_the_turn_where_generate_ends(embedded: LoadedModel) -> None:
    mark, stop = embedded.tokenizer.convert_tokens_to_ids("<|im_start|>"), "<|im_start|>"
    found = events(embedded, forced=[{"step": 2, "token_id": mark}], stop={"max_new_tokens": 6, "stop_strings": [stop]})
    criterion = StopStringCriteria(embedded.tokenizer, [stop])
    ends = [bool(criterion(torch.tensor([ids(found)[: step + 1]]), None)) for step in range(len(ids(found)))]
    assert ends == [False, False, True]
    assert stopped(found).reason == "stop_string"
    shown = "".join(step.text for step in steps(found)) + stopped(found).text
    assert shown == embedded.tokenizer.decode(ids(found)[:2])


def test_the_end_of_a_grammar_ends_a_turn(llama: LoadedModel) -> None:
    found = events(llama, grammar={"kind": "regex", "source": "[0-9]{4}"})
    assert stopped(found).reason == "grammar_end"
    assert "".join(step.text for step in steps(found)).isdigit()
    assert all(step.stages[-1].parameters["legal"] == step.stages[-1].kept for step in steps(found))


def test_a_grammar_masks_a_greedy_end_of_sequence_token() -> None:
    loaded = tiny("llama")
    eos = loaded.facts.eos_ids[0]
    prompt = loaded.tokenizer.encode(PROMPT)
    schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
    value = experiment(sampling={"suppress_tokens": []}, grammar={"kind": "json_schema", "source": schema})
    turn = Turn(loaded, value, 0, prompt, None, torch.Generator())
    turn.prefill()
    logits = turn.first_logits
    assert logits is not None
    with torch.inference_mode():
        logits[eos] = logits.max() + 5
    stepped = turn.step()[0]
    assert isinstance(stepped, Stepped)
    assert stepped.eos is not None
    assert (stepped.eos.rank, stepped.eos.cut_by) == (1, "grammar")
    assert stepped.token_bytes.startswith(b"{")


def test_a_turn_without_candidates_names_the_stage(llama: LoadedModel) -> None:
    found = events(llama, sampling={"suppress_tokens": list(range(ROWS))})
    assert stopped(found).reason == "no_candidate"
    assert stopped(found).evidence == {"stage": "suppress_tokens", "step": 0}
    assert not steps(found)


def test_a_forced_token_is_still_drawn_for(llama: LoadedModel) -> None:
    sampling = {"do_sample": True, "seed": 5, "suppress_tokens": []}
    free = steps(events(llama, sampling=sampling))
    forced = steps(events(llama, sampling=sampling, forced=[{"step": 0, "token_id": free[0].token_id}]))
    assert [step.token_id for step in forced] == [step.token_id for step in free]
    assert forced[0].forced
    other = steps(events(llama, sampling=sampling, forced=[{"step": 0, "token_id": 77}]))[0]
    assert (other.token_id, other.forced) == (77, True)
    assert other.draw is not None
    assert other.draw.drawn_id == free[0].token_id
    assert 77 in other.candidate_ids


def test_the_whole_history_again_gives_the_same_tokens_and_feeds_more(architecture: LoadedModel) -> None:
    found = events(architecture, mistake="history_reencoded")
    n = len(architecture.tokenizer.encode(PROMPT))
    assert ids(found) == ids(events(architecture))
    assert [step.shapes["input_ids"] for step in steps(found)] == [(1, n + step) for step in range(10)]
    assert all(step.kv_tokens == 0 for step in steps(found)[1:])


def test_a_mask_left_short_hides_the_answer_from_itself(architecture: LoadedModel) -> None:
    """Each new token sees the prompt alone: as if the answer before it, and it itself, were padding."""
    prompt = architecture.tokenizer.encode(PROMPT)
    n = len(prompt)
    found = events(architecture, mistake="mask_not_extended")
    right = events(architecture)
    assert ids(found)[0] == ids(right)[0]
    assert ids(found) != ids(right)
    assert all(step.shapes["attention_mask"] == (1, n) for step in steps(found))
    # Padding the answer's positions in a full forward must give the same logits.
    answer = ids(found)
    for count in range(1, 10):
        inputs = make_inputs(prompt + answer[:count], past=0, device=architecture.device)
        inputs.attention_mask[:, n:] = 0
        logits = forward(architecture.model, inputs, None).logits.clone()
        logits[list(architecture.facts.eos_ids)] = -torch.inf
        assert int(logits.argmax()) == answer[count]


@pytest.mark.parametrize("name", ["llama", "gpt2", "sliding"])
def test_back_restores_everything(name: str) -> None:
    loaded = tiny(name)
    value = experiment(
        sampling={"do_sample": True, "temperature": 1.3, "seed": 9},
        stop={"max_new_tokens": 40, "stop_strings": ["zzzz", "\n\n\n"]},
    )
    prompt = loaded.tokenizer.encode("the")
    generator = torch.Generator().manual_seed(9)
    turn = Turn(loaded, value, 0, prompt, None, generator)
    turn.prefill()

    def record(count: int) -> list[tuple[Any, ...]]:
        found = [turn.step()[0] for _ in range(count)]
        return [
            (step.token_id, step.text, step.held_bytes, step.logits.tobytes(), step.draw and step.draw.u, step.kv_bytes)
            for step in found
            if isinstance(step, Stepped)
        ]

    first = record(9)
    state = generator.get_state()
    for _ in range(9):
        turn.back()
    assert record(9) == first
    assert torch.equal(generator.get_state(), state)


def test_a_released_cache_is_built_anew(llama: LoadedModel) -> None:
    prompt = llama.tokenizer.encode(PROMPT)
    turn = Turn(llama, experiment(), 0, prompt, None, torch.Generator())
    turn.prefill()
    chosen = []
    for _ in range(10):
        turn.cache = None
        assert (turn.kv_tokens, turn.kv_bytes, turn.cached_ids) == (0, 0, ())
        stepped = turn.step()[0]
        assert isinstance(stepped, Stepped)
        chosen.append(stepped.token_id)
    assert chosen == by_hand(llama, 10)
    assert turn.cached_ids == (*prompt, *chosen[:-1])
