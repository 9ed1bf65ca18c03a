"""Angles against the library's rotary modules and a case worked by hand; equal distance gives equal scores."""

import copy
import math
import sys
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GlmConfig, LlamaConfig, Phi3Config, SmolLM3Config

from engine.anatomy import AnatomyError, anatomy
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.inside import inside
from engine.probes.relative_phase import relative_phase
from engine.probes.rotary import rotary
from engine.probes.turning import cos_sin, turned
from tests.engine.models import CONFIGS, CONTEXT, tiny
from tests.engine.probes.tables import of_config
from tests.engine.probes.test_lens import FACTS, talk, whole
from tests.engine.probes.test_residual import hidden_states

SMALL = {"vocab_size": 320, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
SMALL |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": CONTEXT}
SMALL |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
SCALED: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
        "rope_theta": 10000.0,
    },
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "rope_theta": 10000.0},
    "dynamic": {
        "rope_type": "dynamic",
        "factor": 2.0,
        "original_max_position_embeddings": CONTEXT,
        "rope_theta": 10000.0,
    },
}


def rotated_by_hand(vector: list[float], position: int, speeds: list[float]) -> list[float]:
    """Pairs (i, i + c): x' = x cos − y sin, y' = x sin + y cos."""
    c, result = len(speeds), list(vector)
    for pair, speed in enumerate(speeds):
        x, y, angle = vector[pair], vector[pair + c], position * speed
        result[pair] = x * math.cos(angle) - y * math.sin(angle)
        result[pair + c] = x * math.sin(angle) + y * math.cos(angle)
    return result


def test_two_pairs_worked_by_hand() -> None:
    """Heads of 4 dimensions, θ = 100: two pairs, (0, 2) and (1, 3), with speeds 100^0 = 1 and 100^(−2/4) = 1/10.

    So they come round in 2π = 6.283 and 20π = 62.83 positions, and at position 3 stand at 3 and 0.3 radians:
    cosines −0.98999 and 0.95534, sines 0.14112 and 0.29552. The vector (1, 0, 0, 2) becomes
    (−0.98999, −2 · 0.29552, 0.14112, 2 · 0.95534) = (−0.98999, −0.59104, 0.14112, 1.91067).
    At position 7 the fast one has gone round once: 7 − 2π = 0.71681.
    """
    config = LlamaConfig(**SMALL | {"hidden_size": 16}, rope_parameters={"rope_type": "default", "rope_theta": 100.0})
    loaded = of_config(config)
    found = rotary(talk(loaded), position=3)
    (shown,) = found.turnings
    assert (shown.rotated, shown.apart, shown.theta, shown.scaling, found.head_dim) == (4, 2, 100, 1, 4)
    np.testing.assert_allclose(shown.frequencies, [1, 0.1], rtol=1e-6)
    np.testing.assert_allclose(shown.wavelengths, [6.283185, 62.83185], rtol=1e-5)
    np.testing.assert_allclose(shown.here, [3, 0.3], rtol=1e-6)
    np.testing.assert_allclose(shown.angles[7], [0.716815, 0.7], rtol=1e-5)
    parts = anatomy(loaded.model)
    by_model = turned(parts, 0, torch.tensor([[1.0, 0, 0, 2]]), *cos_sin(parts, None, [3]))[0]
    np.testing.assert_allclose(by_model, [-0.98999, -0.59104, 0.14112, 1.91067], atol=1e-5)
    np.testing.assert_allclose(by_model, rotated_by_hand([1, 0, 0, 2], 3, [1, 0.1]), atol=1e-6)


def loaded_of(name: str) -> LoadedModel:
    if name in SCALED:
        return of_config(LlamaConfig(**SMALL, rope_parameters=SCALED[name]))
    if name == "half":  # half of each head turns
        return of_config(Phi3Config(**SMALL, partial_rotary_factor=0.5))
    if name == "beside":  # half of each head turns, neighbours in pairs
        return of_config(GlmConfig(**SMALL, head_dim=8, partial_rotary_factor=0.5))
    return tiny(name)


NAMES = ["llama", "qwen3", "capped", "mixed", "linear", "llama3", "yarn", "dynamic", "half", "beside"]


def wrapped(angle: np.ndarray) -> np.ndarray:
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)


@pytest.mark.parametrize("name", NAMES)
def test_angles_are_position_times_the_module_s_own_frequencies(name: str) -> None:
    loaded = loaded_of(name)
    module = anatomy(loaded.model).rotary
    assert module is not None
    found = rotary(talk(loaded))
    assert found.positions.tolist() == list(range(256))
    for shown in found.turnings:
        prefix = "" if shown.kind is None else f"{shown.kind}_"
        own = getattr(module, f"{prefix}inv_freq").double().numpy()
        np.testing.assert_allclose(shown.frequencies, own, rtol=1e-6)
        assert shown.scaling == pytest.approx(getattr(module, f"{prefix}attention_scaling"), rel=1e-6)
        gap = wrapped(shown.angles - found.positions[:, None] * own[None])
        assert np.abs(gap).max() < 1e-4
        assert shown.here.tolist() == shown.angles[found.position].tolist()
        assert shown.rotated == 2 * len(own)


def test_variants_are_told_from_each_other() -> None:
    shown = {name: rotary(talk(loaded_of(name))).turnings for name in NAMES}
    plain = shown["llama"][0].frequencies
    assert [len(shown[name]) for name in NAMES] == [2 if name == "mixed" else 1 for name in NAMES]
    assert {name: shown[name][0].variant for name in SCALED} == {name: name for name in SCALED}
    np.testing.assert_allclose(shown["linear"][0].frequencies, plain / 4, rtol=1e-6)
    assert (shown["linear"][0].factor, shown["yarn"][0].factor) == (4, 4)
    assert shown["yarn"][0].scaling == pytest.approx(0.1 * math.log(4) + 1)  # the paper's (arXiv 2309.00071)
    assert (shown["half"][0].rotated, shown["half"][0].apart) == (4, 2)
    assert (shown["beside"][0].rotated, shown["beside"][0].apart) == (4, 1)
    local, whole_text = shown["mixed"]
    assert (local.kind, local.layers, local.theta) == ("sliding_attention", (0, 2), 10_000)
    assert (whole_text.kind, whole_text.layers, whole_text.theta) == ("full_attention", (1, 3), 1_000_000)


def test_the_model_s_module_stays_as_it_was() -> None:
    """A dynamic variant remembers the longest text it saw; looking at far positions must not make it."""
    loaded = loaded_of("dynamic")
    module = anatomy(loaded.model).rotary
    assert module is not None
    before = module.inv_freq.clone()
    cos, _ = cos_sin(anatomy(loaded.model), None, [0, 4 * CONTEXT])
    assert torch.equal(module.inv_freq, before)
    asked = copy.deepcopy(module)
    asked(torch.zeros(1), position_ids=torch.tensor([[0, 4 * CONTEXT]]))
    assert not torch.equal(asked.inv_freq, before)
    torch.testing.assert_close(cos[0, 1, :4], (4 * CONTEXT * asked.inv_freq).cos(), atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_equal_distance_gives_equal_scores_and_other_distances_others(name: str) -> None:
    conversation = talk(loaded_of(name))
    for position, layer, head in ((0, 0, 0), (5, 1, 3), (9, 0, 2)):
        found = relative_phase(conversation, position=position, layer=layer, head=head)
        record = inside(conversation, position=position).attended[layer]
        back = 0 if position == 0 else 1
        assert found.key_position == position - back
        assert found.raw == pytest.approx(float(record.scores(head)[-1, -1 - back]), abs=1e-4)
        assert found.again == pytest.approx(found.raw, abs=1e-5 * found.lengths)
        assert found.within < 1e-4 * found.lengths
        assert found.between > 100 * found.within
        row = found.scores[found.distances.tolist().index(back)]
        np.testing.assert_allclose(row, found.raw, atol=1e-4 * found.lengths)
        assert found.within == pytest.approx(np.ptp(found.scores, axis=1).max(), rel=1e-5)


@pytest.mark.parametrize("name", ["llama", "mixed", "yarn"])
def test_the_scores_are_those_of_the_library_s_own_rotation(name: str) -> None:
    """Layer 0's query and key from the weights (as transformers computes them before it turns them), then
    `apply_rotary_pos_emb` with the cosines of its rotary module at each pair of places.
    """
    loaded = loaded_of(name)
    conversation = talk(loaded)
    entered = hidden_states(loaded, whole(conversation))[0]
    block = anatomy(loaded.model).blocks[0]
    attention = block.attention
    with torch.inference_mode():
        normed = block.attention_norm(entered)
        query = attention.q_proj(normed[6]).view(4, -1)[1]
        key = attention.k_proj(normed[5]).view(2, -1)[0]
        if name == "mixed":
            query, key = attention.q_norm(query), attention.k_norm(key)
    apply = sys.modules[type(attention).__module__].apply_rotary_pos_emb
    module = copy.deepcopy(anatomy(loaded.model).rotary)
    assert module is not None
    options = {"layer_type": "sliding_attention"} if name == "mixed" else {}
    found = relative_phase(conversation, position=6, layer=0, head=1)
    for row, distance in enumerate(found.distances.tolist()):
        for column, place in enumerate(found.places.tolist()):
            cos, sin = module(torch.zeros(1), position_ids=torch.tensor([[place + distance, place]]), **options)
            both = torch.stack([query, key])[None, None]
            there = apply(both, both, cos, sin)[0][0, 0]
            assert found.scores[row, column] == pytest.approx(float(there[0] @ there[1]), abs=1e-4 * found.lengths)


@pytest.mark.parametrize("probe", [rotary, relative_phase])
def test_a_model_that_turns_nothing_says_so(probe: Any) -> None:
    with pytest.raises(AnatomyError, match="learned a vector for each position"):
        probe(talk(tiny("gpt2")))


def test_a_layer_that_does_not_turn_says_so() -> None:
    config = SmolLM3Config(**SMALL, no_rope_layers=[1, 0])
    conversation = talk(of_config(config))
    assert relative_phase(conversation, layer=0).between > 0
    (turning,) = rotary(conversation).turnings
    assert turning.layers == (0,)
    with pytest.raises(AnatomyError, match="layer 1 of SmolLM3ForCausalLM does not turn its queries$"):
        relative_phase(conversation, layer=1)


def test_a_model_of_which_no_layer_turns_says_so() -> None:
    with pytest.raises(AnatomyError, match="no layer of SmolLM3ForCausalLM turns"):
        rotary(talk(of_config(SmolLM3Config(**SMALL, no_rope_layers=[0, 0]))))


@pytest.mark.parametrize(
    ("probe", "arguments"),
    [(rotary, {"turn": 4}), (rotary, {"position": 999}), (relative_phase, {"layer": 2}), (relative_phase, {"head": 4})],
)
def test_what_is_not_there_is_refused(llama: LoadedModel, probe: Any, arguments: dict[str, int]) -> None:
    with pytest.raises(ExperimentError):
        probe(talk(llama), **arguments)


def test_of_a_long_text_the_positions_up_to_the_one_in_sight_are_shown(llama: LoadedModel) -> None:
    conversation = talk(llama, tokens=1, prompt="the cat sat on the mat. " * 28)
    last = len(whole(conversation)) - 1
    assert last > 256
    found = rotary(conversation, position=last)
    assert (found.positions[0], found.positions[-1]) == (last - 255, last)
    assert found.turnings[0].here.tolist() == found.turnings[0].angles[-1].tolist()


def test_the_embedded_model_turns_by_its_config(embedded: LoadedModel) -> None:
    """θ = 100,000 and heads of 64 (its config): the slowest pair comes round in 2π · 100000^(62/64) positions."""
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    conversation = talk(embedded, 1, model=embedded.facts.model_id, prompt=golden["prompt"])
    (shown,) = rotary(conversation).turnings
    np.testing.assert_allclose(shown.wavelengths, 2 * np.pi * 100_000 ** (np.arange(32) / 32), rtol=1e-5)
    assert shown.layers == tuple(range(30))
    found = relative_phase(conversation, layer=11, head=4)
    assert found.places.tolist() == [0, 1, 10, 100, 1000]
    assert found.within < 1e-4 * found.lengths < found.between


def test_configs_without_a_rotary_module_are_few() -> None:
    """All tiny models but GPT-2 (learned positions) have one; the hybrid one has no attention in its first layer."""
    assert {name for name in CONFIGS if name != "hybrid" and anatomy(tiny(name).model).rotary is None} == {"gpt2"}
