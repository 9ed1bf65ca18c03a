"""The self-check says equal where it is, where the loops part, and why it cannot say."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.probes.parity import parity
from tests.engine.models import ROWS, tiny
from tests.engine.stages.texts import metaspace_tokenizer

SAMPLED = {"temperature": 1.2, "top_k": 40, "seed": 5}


def talk(loaded: LoadedModel, **fields: Any) -> Conversation:
    value = {
        "version": 1,
        "model": "tiny",
        "messages": [{"role": "user", "content": "the cat"}],
        "sampling": SAMPLED,
        "stop": {"max_new_tokens": 8},
    }
    return Conversation(loaded, Experiment.model_validate(value | fields))


def finished(loaded: LoadedModel, **fields: Any) -> Conversation:
    conversation = talk(loaded, **fields)
    while conversation.advance():
        pass
    return conversation


def test_every_prefix_of_a_run_is_equal(llama: LoadedModel) -> None:
    conversation = talk(llama)
    assert parity(conversation).reason == "no token has been made yet"
    conversation.advance()
    assert parity(conversation).reason == "no token has been made yet"
    count = 0
    while conversation.advance():
        count += 1
        result = parity(conversation)
        assert result.equal
        assert len(result.ours) == count
        assert result.seconds > 0


def test_the_second_turn_of_a_sampled_run_is_equal_too(architecture: LoadedModel) -> None:
    conversation = finished(architecture, follow_ups=["and the dog"])
    result = parity(conversation)
    assert result.equal
    assert result.ours == tuple(step.token_id for step in conversation.trace.steps(1))


@pytest.mark.parametrize("do_sample", [True, False])
def test_a_grammar_is_compared_as_a_processor_of_the_callers(llama: LoadedModel, do_sample: bool) -> None:
    grammar = {"kind": "regex", "source": "[a-z]{3,5} [0-9]{2}"}
    conversation = finished(llama, grammar=grammar, sampling=SAMPLED | {"do_sample": do_sample})
    assert conversation.trace.stopped(0).reason == "grammar_end"  # type: ignore[union-attr]
    assert parity(conversation).equal


def test_a_mistake_shows_where_the_loops_part(llama: LoadedModel) -> None:
    result = parity(finished(llama, mistake="mask_not_extended", sampling={"do_sample": False}))
    assert result.reason is None
    assert not result.equal
    assert result.first_difference is not None
    at = result.first_difference
    assert result.ours[:at] == result.theirs[:at]
    assert result.ours[at] != result.theirs[at]


def test_an_overlooked_end_parts_where_generate_stops() -> None:
    loaded = tiny("llama")
    keep = [*loaded.facts.eos_ids, 40, 41]
    sampling = SAMPLED | {"temperature": 100.0, "suppress_tokens": [id for id in range(320) if id not in keep]}
    result = parity(finished(loaded, mistake="eos_not_watched", sampling=sampling))
    assert len(result.ours) == 8
    assert result.theirs[-1] in loaded.facts.eos_ids
    assert result.first_difference == len(result.theirs) < 8


def test_settings_that_come_with_the_model_change_nothing(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    own = GenerationConfig(min_p=0.9, num_beams=2, begin_suppress_tokens=[40], return_dict_in_generate=True)
    monkeypatch.setattr(llama.model, "generation_config", own)
    assert parity(finished(llama)).equal
    assert llama.model.generation_config is own


def only(loaded: LoadedModel, *texts: str) -> dict[str, Any]:
    """Settings under which nothing but these tokens is drawn."""
    keep = {loaded.tokenizer.convert_tokens_to_ids(text) for text in texts}
    return SAMPLED | {"temperature": 5.0, "suppress_tokens": [id for id in range(ROWS) if id not in keep]}


def test_a_stop_string_ends_both_at_the_same_token(llama: LoadedModel) -> None:
    conversation = finished(
        llama, sampling=only(llama, "a", "b"), stop={"max_new_tokens": 30, "stop_strings": ["abba"]}
    )
    assert conversation.trace.stopped(0).reason == "stop_string"  # type: ignore[union-attr]
    assert parity(conversation).equal


def test_generate_ends_earlier_at_a_stop_string_that_begins_in_the_prompt(llama: LoadedModel) -> None:
    fields = {"messages": None, "prompt": "the cat\n", "stop": {"max_new_tokens": 5, "stop_strings": ["\n\n"]}}
    result = parity(finished(llama, sampling=only(llama, "Ċ"), **fields))
    assert (len(result.ours), len(result.theirs), result.first_difference) == (2, 1, 1)


def test_a_stop_string_that_no_token_can_end_ends_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = replace(tiny("llama"), tokenizer=metaspace_tokenizer())
    conversation = finished(
        loaded, messages=None, prompt="the capital", stop={"max_new_tokens": 4, "stop_strings": ["é"]}
    )
    assert parity(conversation).equal


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sampling": SAMPLED | {"order": "llama.cpp"}}, "own order"),
        ({"forced": [{"step": 1, "token_id": 50}]}, "by hand"),
        ({"stop": {"max_new_tokens": 4, "stop_strings": ["x" * 100, "é" * 51]}}, "more than 200 bytes"),
    ],
)
def test_what_generate_cannot_do_is_said(llama: LoadedModel, fields: dict[str, Any], reason: str) -> None:
    result = parity(finished(llama, **fields))
    assert reason in str(result.reason)
    assert not result.equal
    assert result.theirs == ()


def test_the_global_generator_is_left_as_it_was(llama: LoadedModel) -> None:
    conversation = finished(llama)
    before = torch.get_rng_state()
    assert parity(conversation).equal
    assert torch.equal(torch.get_rng_state(), before)
