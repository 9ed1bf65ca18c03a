"""One layer by hand: what it gives is what transformers gives, in every family, and a fault on either side shows."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

from engine.anatomy import AnatomyError, anatomy
from engine.answers.layer import LayerAt, Operation
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes import by_hand
from engine.probes.inside import inside
from engine.probes.layer import layer
from engine.probes.layer_sheet import relative_difference
from engine.probes.watched import watching
from tests.engine.models import WINDOW, tiny
from tests.engine.probes.test_lens import FACTS, talk, whole
from tests.engine.test_attention import eager

FAMILIES = ["llama", "qwen2", "qwen3", "gpt2", "mixed", "capped", "sliding", "fused", "multiplied"]
LONG = "the cat sat on the mat and then the dog sat there too"
PLAIN = ("attention_norm", "query", "key", "value", "scores", "scaled", "mask", "weights", "mixed", "output")


def spoken(name: str, **fields: Any) -> Conversation:
    return talk(tiny(name), prompt=LONG, **fields)


def named(found: LayerAt) -> dict[str, Operation]:
    return {operation.name: operation for operation in found.operations}


def test_the_difference_of_three_numbers() -> None:
    """(1, −4, 2) against (1, −5, 2.5): the largest difference 1 ÷ the largest number 5 = 0.2."""
    ours, model = torch.tensor([1.0, -4.0, 2.0]), torch.tensor([1.0, -5.0, 2.5])
    assert relative_difference(ours, model) == pytest.approx(0.2)
    assert relative_difference(ours, torch.zeros(3)) == 4
    assert relative_difference(torch.zeros(3), torch.zeros(3)) == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_every_operation_is_the_model_s(name: str) -> None:
    conversation = spoken(name)
    last = len(whole(conversation)) - 1
    for position in (0, 5, WINDOW + 3, last - 1, last):
        for index in range(conversation.loaded.facts.layers):
            found = layer(conversation, position=position, layer=index)
            assert (found.position, found.layer, found.expected) == (position, index, 1e-4)
            assert found.largest < 1e-5
            assert found.whole < 1e-5
            unseen = [operation.name for operation in found.operations if operation.difference is None]
            assert unseen == ["scores", "scaled", *(["capped"] if name == "capped" else []), "weights"]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_numbers_are_those_of_a_plain_forward(name: str) -> None:
    """Of transformers alone, with no cache and no attention of ours: eager weights, hidden states, module outputs."""
    conversation = spoken(name)
    model, ids = conversation.loaded.model, whole(conversation)
    position, index = len(ids) - 3, 0
    weights = eager(conversation.loaded, torch.tensor([ids[: position + 1]]))[index][0, :, -1]
    block = anatomy(model).blocks[index]
    with torch.inference_mode(), watching([block.feed_forward_norm, block.output_projection]) as calls:
        states = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
    found = layer(conversation, position=position, layer=index)
    operations = named(found)
    near = {
        "second_residual": states[index + 1][0, position],
        "residual": calls[block.feed_forward_norm].given[0, position],
        "feed_forward_norm": calls[block.feed_forward_norm].gave[0, position],
        "output": calls[block.output_projection].gave[0, position],
        "mixed": calls[block.output_projection].given[0, position],
        "weights": weights[:, -operations["weights"].shape[1] :],
    }
    for key, expected in near.items():
        one = operations[key]
        assert np.prod(one.shape) == expected.numel()
        figures = [expected.norm(), expected.min(), expected.max()]
        np.testing.assert_allclose([one.norm, one.low, one.high], figures, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(one.ours, expected.flatten()[:8], rtol=1e-3, atol=1e-4)
    norms = [float(state[0, position].norm()) for state in states[:-1]]
    np.testing.assert_allclose(found.stream, norms, rtol=1e-4)


def test_what_each_family_has() -> None:
    def names(name: str) -> list[str]:
        return [operation.name for operation in layer(spoken(name)).operations]

    gated = ["residual", "feed_forward_norm", "gate", "up", "active", "gated", "down", "second_residual"]
    turned = ["cosines", "sines", "query_turned", "key_turned"]
    assert names("llama") == [*PLAIN[:4], *turned, *PLAIN[4:], *gated]
    assert names("qwen3") == [*PLAIN[:4], "query_norm", "key_norm", *turned, *PLAIN[4:], *gated]
    assert names("gpt2") == [*PLAIN, "residual", "feed_forward_norm", "up", "active", "down", "second_residual"]
    assert {"capped", "output_norm", "down_norm"} <= set(names("capped"))


def test_grouped_heads_parts_and_biases_are_told() -> None:
    found = layer(spoken("qwen2"), position=9)
    operations = named(found)
    assert (found.heads, found.kv_heads, found.head_dim) == (4, 2, 8)
    assert (operations["query_turned"].shape, operations["key_turned"].shape) == ((4, 8), (2, 8))
    assert operations["scores"].shape == operations["weights"].shape == (4, 10)
    assert (operations["scores"].form, operations["scores"].values["group"]) == ("scores_shared", 2)
    assert operations["query"].values["plus"] == " + b"
    assert operations["output"].values["plus"] == ""
    shared = named(layer(spoken("gpt2")))
    places = [(shared[name].values["first"], shared[name].values["last"]) for name in ("query", "key", "value")]
    assert places == [(0, 31), (32, 63), (64, 95)]
    partly = named(layer(spoken("fused")))["query_turned"]
    assert (partly.values["turned"], partly.values["head_dim"]) == (4, 8)
    assert named(layer(spoken("mixed")))["attention_norm"].values["weight"] == "(1 + w)"
    assert named(layer(spoken("multiplied")))["residual"].values["factor"] == 0.3


@pytest.mark.parametrize(("index", "form"), [(0, "mask_window"), (1, "mask_causal")])
def test_a_sliding_layer_sees_its_window(index: int, form: str) -> None:
    conversation = spoken("mixed")
    mask = named(layer(conversation, position=WINDOW + 6, layer=index))["mask"]
    assert mask.form == form
    assert mask.values["seen"] == (WINDOW if index == 0 else WINDOW + 7)
    assert mask.difference == 0


def test_a_mask_that_was_not_extended_is_worked_out_too() -> None:
    conversation = spoken("llama", mistake="mask_not_extended")
    rendered = conversation.trace.rendered(0)
    assert rendered is not None
    found = layer(conversation, layer=1)
    mask = named(found)["mask"]
    assert (mask.form, mask.values["seen"]) == ("mask_short", len(rendered.token_ids))
    assert found.largest < 1e-5


def test_the_run_s_cache_and_the_modules_stay_as_they_are() -> None:
    conversation = spoken("llama")
    cache = conversation.turn.cache
    before = [(held.keys.clone(), held.values.clone()) for held in cache.layers]
    inside(conversation)  # the library leaves hooks of its own where hidden states are asked for
    modules = list(conversation.loaded.model.modules())
    hooks = [dict(module._forward_hooks) for module in modules]
    layer(conversation, position=5)
    layer(conversation)
    for held, (keys, values) in zip(cache.layers, before, strict=True):
        assert torch.equal(held.keys, keys)
        assert torch.equal(held.values, values)
    assert [dict(module._forward_hooks) for module in modules] == hooks


def test_hooks_go_when_the_forward_fails() -> None:
    module = nn.Linear(2, 2)
    with pytest.raises(RuntimeError), watching([module]):
        module(torch.zeros(3))
    assert not module._forward_hooks


def test_a_norm_done_twice_by_hand_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    once = by_hand.Norm.__call__
    monkeypatch.setattr(by_hand.Norm, "__call__", lambda norm, vector: once(norm, once(norm, vector)))
    found = layer(spoken("llama"))
    assert named(found)["attention_norm"].difference > 0.02
    assert found.largest > 0.02
    assert found.whole > 0.01


@pytest.mark.parametrize("name", ["qwen2", "gpt2"])
def test_a_bias_that_the_model_leaves_out_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = spoken(name)
    attention = anatomy(conversation.loaded.model).blocks[1].attention
    module = attention.q_proj if name == "qwen2" else attention.c_attn
    weight = module.weight.T if name == "qwen2" else module.weight
    monkeypatch.setattr(module, "forward", lambda vector: vector @ weight)
    found = layer(conversation, layer=1)
    assert named(found)["query"].difference > 0.02
    assert found.largest > 0.02
    assert named(found)["attention_norm"].difference < 1e-5
    assert layer(conversation, layer=0).largest < 1e-5


def test_another_scale_of_the_scores_shows_in_the_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_hand, "softmax", lambda scores: torch.softmax(scores * 1.1, dim=-1))
    found = layer(spoken("llama"))
    assert named(found)["mixed"].difference > 1e-3
    assert named(found)["query_turned"].difference < 1e-5


def test_a_turn_the_other_way_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = by_hand.rotate
    monkeypatch.setattr(by_hand, "rotate", lambda vectors, cosines, sines, way: turn(vectors, cosines, -sines, way))
    found = named(layer(spoken("llama")))
    assert found["query_turned"].difference > 0.02
    assert found["key_turned"].difference > 0.02


def test_a_number_that_is_none_is_the_largest_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(by_hand.ACTIVATIONS, "silu", lambda x: torch.where(x > 0, x, torch.nan))
    monkeypatch.setattr("engine.probes.by_hand.find_activation", lambda *_: "silu")
    found = layer(spoken("llama"))
    assert np.isnan(found.largest)
    assert np.isnan(found.whole)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_16_bit_model_differs_by_its_roundings(dtype: torch.dtype) -> None:
    loaded = tiny("qwen2")
    model = copy.deepcopy(loaded.model).to(dtype)
    half = LoadedModel.of(model, loaded.tokenizer, model_id="tiny", title="Tiny")
    found = layer(talk(half, prompt=LONG), layer=1)
    assert found.dtype == str(dtype).removeprefix("torch.")
    assert 1e-4 < found.largest < found.expected
    assert found.expected == (0.1 if dtype == torch.bfloat16 else 0.0125)


@pytest.mark.parametrize("arguments", [{"layer": 2}, {"layer": -1}, {"position": 999}, {"turn": 3}])
def test_what_is_not_there_is_refused(llama: LoadedModel, arguments: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError):
        layer(talk(llama), **arguments)


def test_what_cannot_be_worked_out_says_why() -> None:
    with pytest.raises(AnatomyError, match="no attention of layer 0"):
        layer(spoken("hybrid"))
    loaded = tiny("llama")
    config = Qwen3MoeConfig(
        vocab_size=loaded.facts.vocab_rows, hidden_size=32, intermediate_size=64, moe_intermediate_size=16,
        num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=8, num_experts=4,
        num_experts_per_tok=2, max_position_embeddings=512, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    experts = LoadedModel.of(AutoModelForCausalLM.from_config(config), loaded.tokenizer, model_id="tiny", title="Tiny")
    with pytest.raises(AnatomyError, match="no activation of layer 0"):
        layer(talk(experts))


def test_layer_5_of_the_embedded_model(embedded: LoadedModel) -> None:
    """Figures from plain transformers calls on the prompt's ids: forward hooks on model.model.layers[5]'s
    input_layernorm, q_proj, k_proj, act_fn, down_proj and on the layer itself, last position, use_cache=False.
    """
    fields = {
        "model": embedded.facts.model_id,
        "prompt": FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]["prompt"],
        "sampling": {"do_sample": False},
    }
    found = layer(talk(embedded, tokens=1, **fields), layer=5)
    expected = {
        "attention_norm": (5.0837, -0.9374, 2.8914, 0.188876),
        "query": (38.0366, -9.0823, 7.3584, -0.252217),
        "key": (25.7286, -4.3344, 9.3914, -1.049821),
        "active": (8.6970, -0.2785, 1.4010, 0.038686),
        "down": (15.5050, -2.8168, 2.4992, 1.150245),
        "second_residual": (84.1029, -47.4388, 47.9408, 3.927614),
    }
    operations = named(found)
    for name, figures in expected.items():
        one = operations[name]
        np.testing.assert_allclose([one.norm, one.low, one.high, one.ours[0]], figures, atol=2e-4)
    np.testing.assert_allclose(found.stream[:7], [2.601, 35.885, 56.871, 66.830, 73.312, 79.247, 84.103], atol=2e-3)
    assert len(found.operations) == 22
    assert found.largest < 1e-5  # measured: 2e-6 at most over all layers
    assert found.whole < 1e-6
    assert (operations["query_turned"].shape, operations["key_turned"].shape) == ((9, 64), (3, 64))
