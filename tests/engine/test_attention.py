"""The own attention function: the model's own weights, for whoever asked and nobody else."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import AutoModelForCausalLM, FalconConfig, GptOssConfig

from engine import attention
from engine.attention import Attended, capturing
from engine.model import LoadedModel
from tests.engine.models import ROWS, tiny, tiny_tokenizer

NAMES = ("llama", "qwen3", "gpt2", "mixed", "sliding", "capped")


def ids(seed: int, count: int = 40) -> torch.Tensor:
    return torch.randint(0, 300, (1, count), generator=torch.Generator().manual_seed(seed))


def captured(loaded: LoadedModel, tokens: torch.Tensor) -> dict[int, Attended]:
    with torch.inference_mode(), capturing() as layers:
        loaded.model(input_ids=tokens)
    return layers


def eager(loaded: LoadedModel, tokens: torch.Tensor) -> tuple[torch.Tensor, ...]:
    model = copy.deepcopy(loaded.model)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        return model(input_ids=tokens, output_attentions=True).attentions


def hand() -> Attended:
    """2 heads that share one key/value head, 3 tokens, head_dim 2, scaling 1/2.

    Keys  (1, 0) (0, 1) (1, 1); the newest query is (2, 4) in head 0 and (0, −2) in head 1.
    Head 0: q·k = 2, 4, 6; scaled 1, 2, 3; softmax e¹, e², e³ over their sum 30.1929: .0900, .2447, .6652.
    Head 1: q·k = 0, −2, −2; scaled 0, −1, −1; softmax 1, .3679, .3679 over 1.7358: .5761, .2119, .2119.
    Its first query sees token 0 alone, its second the first two: (1, 0) gives q·k = 1, 0; scaled .5, 0: .6225, .3775.
    """
    query = torch.tensor([[[[9.0, 9], [1, 0], [2, 4]], [[9, 9], [1, 0], [0, -2]]]])
    key = torch.tensor([[[[1.0, 0], [0, 1], [1, 1]]]])
    value = torch.tensor([[[[3.0, 4], [0, 2], [1, 0]]]])
    return Attended(query, key, value, None, 0.5, None, torch.zeros(1, 3, 2, 2))


def test_two_heads_of_three_tokens_worked_by_hand():
    found = hand()
    assert found.scores(0)[-1].tolist() == [2, 4, 6]
    assert found.scores(1)[-1].tolist() == [0, -2, -2]
    assert found.masked(0)[-1].tolist() == [1, 2, 3]
    assert found.masked(0)[1].tolist() == [0.5, 0, -torch.inf]
    expected = torch.tensor([[0.0900, 0.2447, 0.6652], [0.5761, 0.2119, 0.2119]])
    torch.testing.assert_close(found.all_weights()[:, -1], expected, atol=5e-5, rtol=0)
    torch.testing.assert_close(found.weights(1)[1], torch.tensor([0.6225, 0.3775, 0]), atol=5e-5, rtol=0)
    assert found.weights(0)[0].tolist() == [1, 0, 0]


def test_a_cap_bends_the_scores_before_the_mask():
    found = Attended(*[getattr(hand(), name) for name in ("query", "key", "value", "mask", "scaling")], 2.0, None)
    torch.testing.assert_close(found.masked(0)[-1], 2 * torch.tanh(torch.tensor([0.5, 1.0, 1.5])))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "mixed", "sliding"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_output_is_the_library_s_bit_for_bit(name, dtype):
    """With and without a cache, one token and several, a row that is filled up on the left among them."""
    ours = copy.deepcopy(tiny(name).model).to(dtype)
    theirs = copy.deepcopy(ours)
    theirs.set_attn_implementation("sdpa")
    tokens = torch.cat([ids(1), ids(2)])
    filled = torch.ones_like(tokens)
    filled[1, :7] = 0
    found = [[], []]
    for model, logits in zip((ours, theirs), found, strict=True):
        cache = None
        with torch.inference_mode():
            for start, end in ((0, 15), (15, 38), (38, 39), (39, 40)):
                fed = model(
                    input_ids=tokens[:, start:end],
                    attention_mask=filled[:, :end],
                    cache=cache,
                    use_cache=True,
                )
                cache = fed.past_key_values
                logits.append(fed.logits)
            logits.append(model(input_ids=tokens).logits)
    for one, other in zip(*found, strict=True):
        # What fills a row up sees nothing at all, which is NaN or 0 by the kernel that is chosen, in either way.
        assert torch.equal(one.nan_to_num(), other.nan_to_num())
    assert all(bool(one.isfinite().all()) for one in found[0][1:])


@pytest.mark.parametrize("name", NAMES)
def test_weights_equal_eager_attention(name):
    loaded, tokens = tiny(name), ids(1)
    found, theirs = captured(loaded, tokens), eager(loaded, tokens)
    assert len(found) == len(theirs) == loaded.facts.layers
    for layer, expected in enumerate(theirs):
        weights = found[layer].all_weights()
        torch.testing.assert_close(weights, expected[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]), atol=1e-5, rtol=0)
        for head in range(loaded.facts.heads):
            torch.testing.assert_close(found[layer].weights(head), weights[head], atol=1e-6, rtol=0)
        mixed = torch.einsum("hnm,hmd->nhd", weights, values(found[layer]))
        torch.testing.assert_close(mixed, found[layer].output[0], atol=1e-4, rtol=1e-4)


def values(record: Attended) -> torch.Tensor:
    return record.value[0].repeat_interleave(record.query.shape[1] // record.value.shape[1], dim=0)


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_the_library_s_own_attention(name):
    loaded, tokens = tiny(name), ids(2)
    theirs = copy.deepcopy(loaded.model)
    theirs.set_attn_implementation("eager")
    with torch.inference_mode():
        torch.testing.assert_close(loaded.model(tokens).logits, theirs(tokens).logits, atol=1e-4, rtol=1e-4)


def test_eight_threads_at_once_record_what_each_records_alone():
    work = [(tiny(NAMES[number % 3]), ids(number, 20 + number), number % 3 != 1) for number in range(24)]

    def weights(item) -> list[torch.Tensor]:
        loaded, tokens, wanted = item
        if wanted:
            return [record.all_weights() for record in captured(loaded, tokens).values()]
        with torch.inference_mode():
            return [loaded.model(input_ids=tokens).logits]

    alone = [weights(item) for item in work]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(weights, work))
    for ours, theirs in zip(together, alone, strict=True):
        assert len(ours) == len(theirs)
        assert all(map(torch.equal, ours, theirs))


def test_nothing_is_recorded_outside_and_only_what_is_wanted_inside(llama):
    with torch.inference_mode():
        llama.model(ids(1))
        with capturing([1]) as layers:
            llama.model(ids(1))
            with capturing() as inner:
                llama.model(ids(2))
        assert list(layers) == [1]
        assert sorted(inner) == [0, 1]
        before = layers[1]
        llama.model(ids(3))
    assert layers == {1: before}
    assert attention._RECORD.get() is None


def test_a_forward_can_end_with_the_layer_that_is_wanted(llama):
    with torch.inference_mode(), capturing() as whole:
        llama.model(ids(1))
    reached = False
    with torch.inference_mode(), capturing(last=0) as layers:
        llama.model(ids(1))
        reached = True
    assert not reached
    assert list(layers) == [0]
    assert torch.equal(layers[0].output, whole[0].output)
    assert attention._RECORD.get() is None


def test_families_with_an_attention_of_their_own_keep_it():
    small = {"vocab_size": ROWS, "hidden_size": 32, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    falcon = AutoModelForCausalLM.from_config(
        FalconConfig(**small, num_hidden_layers=2, num_attention_heads=4, alibi=True)
    )
    sinks = GptOssConfig(
        **small, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        num_local_experts=2, num_experts_per_tok=1,
    )  # fmt: skip
    for model in (falcon, AutoModelForCausalLM.from_config(sinks)):
        expected = model.eval()(ids(1)).logits
        loaded = LoadedModel.of(model, tiny_tokenizer(), model_id="tiny", title="Tiny")
        assert loaded.model.config._attn_implementation != attention.NAME
        torch.testing.assert_close(loaded.model(ids(1)).logits, expected)
