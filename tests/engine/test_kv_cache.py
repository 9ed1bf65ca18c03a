"""Bytes by formula are those of the tensors; slices and cuts give the logits of a cache that never was longer."""

from collections.abc import Callable

import pytest
import torch
from transformers import AutoConfig, Cache

from engine import kv_cache
from engine.model import LoadedModel
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs
from tests.engine.models import WINDOW, tiny

EVERY_KIND = ["llama", "qwen3", "gpt2", "full", "sliding", "mixed"]
TOLERANCE = 2e-5  # logits of about ±5, float32: another order of the same sums


def ids(count: int) -> list[int]:
    return torch.randint(3, 300, (count,), generator=torch.Generator().manual_seed(count)).tolist()


def filled(loaded: LoadedModel, tokens: list[int], *, one_by_one: bool = False) -> tuple[Cache, torch.Tensor]:
    """A cache that took in `tokens`, and the logits of the last."""
    cache = kv_cache.new_cache(loaded.model.config)
    for part in [[token] for token in tokens] if one_by_one else [tokens]:
        inputs = make_inputs(part, past=kv_cache.tokens(cache), device=loaded.device)
        logits = forward(loaded.model, inputs, cache).logits
    return cache, logits


def feed(loaded: LoadedModel, cache: Cache, token: int) -> torch.Tensor:
    return forward(loaded.model, make_inputs([token], past=kv_cache.tokens(cache), device=loaded.device), cache).logits


@pytest.mark.parametrize("name", EVERY_KIND)
@pytest.mark.parametrize("count", [1, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 9, 60])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_bytes_by_formula_are_bytes_of_the_tensors(name: str, count: int, one_by_one: bool) -> None:
    loaded = tiny(name)
    cache, _ = filled(loaded, ids(count), one_by_one=one_by_one)
    held = [layer.keys.nbytes + layer.values.nbytes for layer in cache.layers]
    for layer, kind, nbytes in zip(cache.layers, loaded.facts.layer_kinds, held, strict=True):
        assert kv_cache.layer_kind(layer) == kind
        assert layer.keys.shape[2] == (min(count, WINDOW - 1) if kind == "sliding" else count)
        assert nbytes == loaded.facts.layer_kv_bytes(kind, count)
    assert kv_cache.measured_bytes(cache) == sum(held) == loaded.facts.kv_bytes(count) > 0
    assert kv_cache.tokens(cache) == count


def test_kinds_of_layers_are_asked_of_the_cache() -> None:
    assert tiny("mixed").facts.layer_kinds == ("sliding", "full") * 2
    assert tiny("sliding").facts.layer_kinds == ("sliding",) * 2
    hybrid = AutoConfig.for_model("qwen3_next", num_hidden_layers=4)
    layers = kv_cache.new_cache(hybrid).layers
    assert [kv_cache.layer_kind(layer) for layer in layers] == ["stateful"] * 3 + ["full"]
    sharing = AutoConfig.for_model("gemma3n_text")
    kinds = [kv_cache.layer_kind(layer) for layer in kv_cache.new_cache(sharing).layers]
    assert "shared" in kinds
    assert {"sliding", "full"} <= set(kinds)


def test_an_empty_cache_holds_nothing() -> None:
    cache = kv_cache.new_cache(tiny("llama").model.config)
    assert (kv_cache.tokens(cache), kv_cache.measured_bytes(cache), kv_cache.first_shapes(cache)) == (0, 0, {})


def test_grouped_heads_take_their_share_of_the_bytes() -> None:
    grouped, full = tiny("llama").facts, tiny("full").facts
    assert (grouped.kv_heads, full.kv_heads) == (2, 4)
    assert full.kv_bytes(10) == 2 * grouped.kv_bytes(10)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "full"])
def test_a_slice_gives_the_logits_of_the_full_forward_and_copies_nothing(name: str) -> None:
    loaded = tiny(name)
    tokens = ids(40)
    cache, _ = filled(loaded, tokens)
    before = [layer.keys.clone() for layer in cache.layers]
    for count in range(1, 41):
        view = kv_cache.slice_cache(cache, count - 1)
        assert count == 1 or view.layers[0].keys.data_ptr() == cache.layers[0].keys.data_ptr()
        logits = feed(loaded, view, tokens[count - 1])
        _, whole = filled(loaded, tokens[:count])
        torch.testing.assert_close(logits, whole, atol=TOLERANCE, rtol=0)
    assert kv_cache.tokens(cache) == 40
    for layer, keys in zip(cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_cutting_back_leaves_a_cache_that_never_was_longer(name: str) -> None:
    loaded = tiny(name)
    tokens = ids(WINDOW - 1)
    cache, _ = filled(loaded, tokens, one_by_one=True)
    short, _ = filled(loaded, tokens[:7], one_by_one=True)
    assert kv_cache.cut_back(cache, 7)
    assert kv_cache.tokens(cache) == 7
    assert torch.equal(feed(loaded, cache, 5), feed(loaded, short, 5))


@pytest.mark.parametrize("name", ["sliding", "mixed"])
def test_a_full_window_cannot_go_back_and_says_so(name: str) -> None:
    loaded = tiny(name)
    cache, _ = filled(loaded, ids(WINDOW))
    before = [layer.keys.clone() for layer in cache.layers]
    assert f"window of {WINDOW}" in str(kv_cache.reason_against_cut(cache, WINDOW - 1))
    assert not kv_cache.cut_back(cache, WINDOW - 1)
    assert kv_cache.tokens(cache) == WINDOW
    assert all(torch.equal(layer.keys, keys) for layer, keys in zip(cache.layers, before, strict=True))
    with pytest.raises(ValueError, match="window"):
        kv_cache.slice_cache(cache, 3)
    assert kv_cache.cut_back(cache, WINDOW)
    assert kv_cache.tokens(kv_cache.slice_cache(cache, WINDOW)) == WINDOW


def test_a_running_state_cannot_go_back_and_says_so() -> None:
    loaded = tiny("hybrid")
    cache, _ = filled(loaded, ids(7))
    assert "running state" in str(kv_cache.reason_against_cut(cache, 3))
    assert not kv_cache.cut_back(cache, 3)
    assert kv_cache.tokens(cache) == 7
    kinds = [kv_cache.layer_kind(layer) for layer in cache.layers]
    assert kinds == list(loaded.facts.layer_kinds) == ["stateful", "full", "stateful"]
    assert kv_cache.measured_bytes(cache) == loaded.facts.kv_bytes(7)
    assert kv_cache.first_shapes(cache)["keys"][2] == 7


@pytest.mark.parametrize("count", [-1, 8])
def test_a_cache_cannot_be_cut_to_what_it_never_held(count: int) -> None:
    cache, _ = filled(tiny("llama"), ids(7))
    assert not kv_cache.cut_back(cache, count)
    assert kv_cache.tokens(cache) == 7


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [([], [], 0), ([1], [], 0), ([1, 2, 3], [1, 2, 3], 3), ([1, 2], [1, 2, 3], 2), ([1, 5, 3], [1, 2, 3], 1)],
)
def test_common_prefix(first: list[int], second: list[int], length: int) -> None:
    assert kv_cache.common_prefix(first, second) == length == kv_cache.common_prefix(second, first)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
            True,
        ),
        (RuntimeError("MPS backend out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error: Exception, verdict: bool) -> None:
    assert kv_cache.is_out_of_memory(error) is verdict


def test_rows_of_a_running_state_cannot_be_taken() -> None:
    cache, _ = filled(tiny("hybrid"), ids(7))
    with pytest.raises(ValueError, match="layer 0 keeps a running state"):
        kv_cache.take_rows(cache, [0, 0])
    assert kv_cache.reason_against_rows(filled(tiny("mixed"), ids(7))[0]) is None


def test_evicting_leaves_the_newest_positions_and_their_bytes() -> None:
    loaded = tiny("llama")
    cache = kv_cache.new_cache(loaded.model.config)
    forward(loaded.model, make_inputs(list(range(3, 13)), past=0, device=loaded.device), cache)
    whole = [layer.keys.clone() for layer in cache.layers]
    kv_cache.evict(cache, 4)
    assert kv_cache.tokens(cache) == 6
    assert all(torch.equal(layer.keys, keys[..., 4:, :]) for layer, keys in zip(cache.layers, whole, strict=True))
    assert kv_cache.measured_bytes(cache) == loaded.facts.kv_bytes(6)


@pytest.mark.parametrize(("name", "why"), [("sliding", "window of its own, 16"), ("hybrid", "running state")])
def test_a_cache_that_cannot_evict_says_why(name: str, why: str) -> None:
    cache = kv_cache.new_cache(tiny(name).model.config)
    assert why in str(kv_cache.reason_against_evicting(cache))
    kv_cache.evict(cache, 0)  # nothing is asked for
    with pytest.raises(ValueError, match=why):
        kv_cache.evict(cache, 1)


@pytest.mark.parametrize("name", ["llama", "hybrid"])
@pytest.mark.parametrize("second", [kv_cache.slice_cache, kv_cache.copy_cache])
def test_feeding_a_second_cache_leaves_the_first_as_it_is(name: str, second: Callable[[Cache, int], Cache]) -> None:
    loaded = tiny(name)
    cache, _ = filled(loaded, ids(9))
    untouched, _ = filled(loaded, ids(9))
    feed(loaded, second(cache, 9), 5)
    assert torch.equal(feed(loaded, cache, 7), feed(loaded, untouched, 7))
