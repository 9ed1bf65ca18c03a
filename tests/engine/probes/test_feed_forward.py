"""Neurons add up to the feed-forward, their effects to its share of the logit; tokens are those of a plain product."""

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, Phi3Config, PreTrainedConfig, Qwen2Config, Qwen2MoeConfig

from engine.anatomy import AnatomyError, anatomy
from engine.answers.feed_forward import Sparsity
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.contributions import LinearNorm
from engine.probes.feed_forward import NEURONS, TOKENS, Path, _sparsity, feed_forward
from engine.probes.inside import inside
from engine.probes.neurons import Fired, down_projection, firing
from engine.probes.residual import residual
from tests.engine.models import CONTEXT, ROWS, tiny, tiny_tokenizer
from tests.engine.probes.test_lens import FACTS, FAMILIES, talk, whole

SHAPE = {
    "vocab_size": ROWS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


def other(config: PreTrainedConfig) -> LoadedModel:
    """A small random model of a family that `tiny` does not have."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for label, parameter in model.named_parameters():
            nn.init.normal_(parameter, mean=1.0 if "norm" in label else 0.0, std=0.3)
    return LoadedModel.of(model, tiny_tokenizer(), model_id="tiny", title="Tiny")


def family(name: str) -> LoadedModel:
    if name == "qwen2":  # biases on q, k, v
        return other(Qwen2Config(**SHAPE))
    return other(Phi3Config(**SHAPE)) if name == "phi3" else tiny(name)  # Phi-3 fuses gate and up


EVERY = [*FAMILIES, "qwen2", "phi3"]


def test_two_neurons_by_hand() -> None:
    """Activations 3 and −1 on columns (0, 4) and (3, 4), bias (1, 0).

    Pushes: 3 · 4 = 12 and 1 · 5 = 5; squares 144 + 25 = 169, so the first alone carries 144/169, more than half. Both
    are at least a tenth of 12. One activation is above 0. The output is 3 · (0, 4) − (3, 4) + (1, 0) = (−2, 8).
    """
    projection = nn.Linear(2, 2)
    projection.weight.data = torch.tensor([[0.0, 3.0], [4.0, 4.0]])  # [hidden, neurons]
    projection.bias.data = torch.tensor([1.0, 0.0])
    fired = Fired(projection.requires_grad_(False), torch.tensor([3.0, -1.0]))
    assert _sparsity(fired) == Sparsity(neurons=2, positive=1, clear=2, half=1)
    assert fired.columns.tolist() == [[0, 4], [3, 4]]
    assert (
        (fired.activations @ fired.columns + fired.bias).tolist() == projection(fired.activations).tolist() == [-2, 8]
    )
    silent = Fired(projection, torch.zeros(2))
    assert _sparsity(silent) == Sparsity(neurons=2, positive=0, clear=0, half=0)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("layer", [0, 1])
def test_the_neurons_are_those_that_the_down_projection_multiplies(name: str, layer: int) -> None:
    """Oracle: the library's forward over the whole context, with the projection's input read there."""
    loaded = family(name)
    conversation = talk(loaded)
    ids, position = whole(conversation), 7
    block = anatomy(loaded.model).blocks[layer]
    projection = down_projection(block)
    seen: dict[str, torch.Tensor] = {}
    handles = [
        projection.register_forward_pre_hook(lambda _, given: seen.update(a=given[0])),
        block.feed_forward.register_forward_hook(lambda _, __, gave: seen.update(y=gave)),
    ]
    with torch.inference_mode():
        loaded.model(torch.tensor([ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    activations, output = seen["a"][0, position], seen["y"][0, position]
    weight = projection.weight if name == "gpt2" else projection.weight.T
    pushes = (activations[:, None] * weight).norm(dim=1)
    found = feed_forward(conversation, position=position, layer=layer)
    assert (found.position, found.layer) == (position, layer)
    order = pushes.argsort(descending=True)[:NEURONS]
    assert found.neuron_ids.tolist() == order.tolist()
    np.testing.assert_allclose(found.activations, activations[order], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(found.pushes, pushes[order], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(found.activations * found.lengths, np.sign(found.activations) * found.pushes, rtol=1e-5)
    assert found.output_norm == pytest.approx(float(output.norm()), rel=1e-4)
    assert found.max_difference <= 1e-6 * found.output_norm
    assert found.has_bias is (name == "gpt2")
    assert found.sparsity.positive == int((activations > 0).sum())
    squares = np.sort(pushes.numpy().astype(np.float64) ** 2)[::-1].cumsum()
    half = found.sparsity.half
    assert squares[half - 1] >= squares[-1] / 2
    assert half == 1 or squares[half - 2] < squares[-1] / 2
    np.testing.assert_allclose(found.curve_shares, squares[found.curve_counts - 1] / squares[-1], rtol=1e-4)
    assert (found.curve_counts[0], found.curve_counts[-1], len(found.by_layer)) == (1, len(pushes), loaded.facts.layers)


@pytest.mark.parametrize("name", EVERY)
def test_the_neurons_effects_add_up_to_the_layer_s_share_of_the_logit(name: str) -> None:
    """The residual stream's shares are worked out another way: from what the layer added, not from its neurons."""
    conversation = talk(family(name))
    for position in (0, 6, len(whole(conversation)) - 1):
        shares = residual(conversation, position=position)
        for layer in (0, 1):
            found = feed_forward(conversation, position=position, layer=layer)
            assert (found.target_id, found.target_chosen) == (shares.target_id, shares.target_chosen)
            assert found.target_total == pytest.approx(float(shares.feed_forward_shares[layer]), abs=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_a_neuron_s_tokens_are_those_whose_logits_fall_when_it_is_taken_away(name: str) -> None:
    """With the scales of the norms held fixed: gain ⊙ column (centred for a LayerNorm) times the head's rows."""
    loaded = family(name)
    conversation = talk(loaded)
    found, inner = feed_forward(conversation, layer=1), inside(conversation)
    parts, block = inner.parts, inner.parts.blocks[1]
    with torch.inference_mode():
        column = Fired(down_projection(block)).columns[int(found.neuron_ids[0])] * float(found.activations[0])
        if block.after_feed_forward is not None:
            output = block.feed_forward(block.feed_forward_norm(inner.stream[1] + inner.attention[1])[None, None])[0, 0]
            assert found.output_norm == pytest.approx(float(output.norm()), rel=1e-3)
            column = (block.after_feed_forward(output) / output) * column
        end = inner.stream[-1]
        if isinstance(parts.final_norm, nn.LayerNorm):
            column, end = column - column.mean(), end - end.mean()
            read = parts.final_norm.weight * column / end.pow(2).mean().sqrt()
        else:
            read = (parts.final_norm(end) / end) * column
        effects = block.multiplier * parts.logit_scale * (parts.head.weight @ read)
    np.testing.assert_allclose(found.raised[0], effects.topk(TOKENS).values, atol=2e-3, rtol=2e-3)
    np.testing.assert_allclose(found.lowered[0], effects.topk(TOKENS, largest=False).values, atol=2e-3, rtol=2e-3)
    np.testing.assert_allclose(effects[found.raised_ids[0]], found.raised[0], atol=2e-3, rtol=2e-3)
    assert found.target_effects[0] == pytest.approx(float(effects[found.target_id]), abs=2e-3)
    assert set(found.token_bytes) == {*found.raised_ids.flat, *found.lowered_ids.flat}


def test_a_path_applies_the_logit_scale_and_both_norms() -> None:
    """By hand: a column (2, 0), gains 3 then 5, head row (7, 0), scale 0.5: 2 · 3 · 5 · 7 / 2 = 105."""
    after = LinearNorm(torch.tensor([3.0, 1.0]), torch.zeros(2), centres=False)
    final = LinearNorm(torch.tensor([5.0, 1.0]), torch.zeros(2), centres=False)
    path = Path(after, final, torch.tensor([[7.0, 0.0], [0.0, 1.0]]), 0.5)
    column = torch.tensor([[2.0, 0.0]])
    assert path.effects(column).tolist() == [[105.0, 0.0]]
    assert float(column[0] @ path.direction(0)) == 105.0


def test_a_mixture_of_experts_says_why_not_and_leaves_the_other_layers() -> None:
    config = Qwen2MoeConfig(
        **SHAPE, mlp_only_layers=[0], num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=16
    )
    conversation = talk(other(config))
    found = feed_forward(conversation, layer=0)
    assert found.by_layer[0] is not None
    assert found.by_layer[1] is None
    assert found.max_difference <= 1e-6 * found.output_norm
    with pytest.raises(AnatomyError, match="layer 1 is a mixture of experts"):
        feed_forward(conversation, layer=1)


@pytest.mark.parametrize("arguments", [{"layer": -1}, {"layer": 2}, {"position": 99}, {"turn": 3}])
def test_what_is_not_there_is_refused(llama: LoadedModel, arguments: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError):
        feed_forward(talk(llama), **arguments)


def test_nothing_stays_on_the_model_and_other_threads_are_not_caught(llama: LoadedModel) -> None:
    modules = list(llama.model.modules())

    def hooks() -> int:
        return sum(len(module._forward_pre_hooks) + len(module._forward_hooks) for module in modules)

    conversation, before = talk(llama), hooks()
    with firing(llama.model) as caught:
        assert hooks() == before + 2 * llama.facts.layers
        stranger = threading.Thread(target=lambda: llama.model(torch.tensor([[1, 2, 3]])))
        stranger.start()
        stranger.join()
        assert not any(one.activations.numel() for one in caught.values())
        inside(conversation)
        assert all(one.activations.numel() == 64 for one in caught.values())
    assert hooks() == before
    with pytest.raises(ExperimentError):
        feed_forward(conversation, position=99)
    assert hooks() == before


def test_the_embedded_model_s_neurons(embedded: LoadedModel) -> None:
    """Measured with plain transformers calls, without this program.

    Recipe: `model(ids)` on the prompt; a forward pre-hook on `model.layers[27].mlp.down_proj` gives a [1536] at the
    last position; push = |a| · down_proj.weight.norm(dim=0). Effects of neuron 1392: `lm_head.weight @ (norm.weight ·
    a[1392] · down_proj.weight[:, 1392]) / rms`, rms = √(mean(x²) + ε) of the input x of `model.norm`, caught there.
    """
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    fields = {"model": embedded.facts.model_id, "prompt": golden["prompt"], "sampling": {"do_sample": False}}
    found = feed_forward(talk(embedded, tokens=1, **fields), layer=27)
    assert found.target_id == golden["paris_id"]
    assert found.neuron_ids[:4].tolist() == [1392, 612, 3, 846]
    np.testing.assert_allclose(found.activations[:4], [18.728, -9.885, -7.453, 10.044], atol=0.01)
    assert [found.token_bytes[int(token)] for token in found.raised_ids[0]] == [
        b"hemical",
        b"onstr",
        b"anum",
        b"ovember",
        b" BASIS",
    ]
    assert [found.token_bytes[int(token)] for token in found.lowered_ids[0]] == [
        b" back",
        b"BACK",
        b"back",
        b" Back",
        b"lap",
    ]
    assert found.target_effects[0] == pytest.approx(1.470, abs=0.005)
    assert (found.sparsity.positive, found.sparsity.half) == (763, 12)
