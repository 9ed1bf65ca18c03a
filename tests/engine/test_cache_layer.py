"""Spare room saves the copying and changes no number; what others look at is never written over."""

import pytest
import torch
from transformers.cache_utils import DynamicLayer

from engine import kv_cache
from engine.cache_layer import SPARE, SpareLayer
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs
from tests.engine.models import tiny


def states(count: int, seed: int) -> torch.Tensor:
    """[1, 2 heads, count, 4]"""
    return torch.randn(1, 2, count, 4, generator=torch.Generator().manual_seed(seed))


def test_holds_what_concatenation_holds_through_growth_and_cuts() -> None:
    ours, theirs = SpareLayer(), DynamicLayer()
    for seed, (count, cut) in enumerate([(5, 0), (1, 0), (SPARE + 3, 4), (1, 1), (1, 0), (2 * SPARE, SPARE), (2, 0)]):
        keys, values = states(count, seed), states(count, seed + 100)
        for mine, other in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            assert torch.equal(mine, other)
        for layer in (ours, theirs):
            layer.crop(-cut)
        assert ours.get_seq_length() == theirs.get_seq_length()


def test_a_decode_step_copies_nothing_while_there_is_room() -> None:
    layer = SpareLayer()
    layer.update(states(7, 0), states(7, 1))
    place = layer.keys.data_ptr()
    for step in range(SPARE):
        layer.update(states(1, step), states(1, step))
        assert layer.keys.data_ptr() == place
    layer.update(states(1, 0), states(1, 0))
    assert layer.keys.data_ptr() != place
    assert layer.keys.untyped_storage().nbytes() == 2 * (7 + SPARE + 1 + SPARE) * 4 * 4


@pytest.mark.parametrize("leave", ["crop", "evict"])
def test_a_room_that_is_mostly_empty_is_given_back(leave: str) -> None:
    layer = SpareLayer()
    keys, values = states(1_000, 0), states(1_000, 1)
    layer.update(keys, values)
    if leave == "crop":
        layer.crop(-990)
        kept = slice(0, 10)
    else:
        layer.evict(990)
        kept = slice(990, 1_000)
    assert layer.keys.untyped_storage().nbytes() == layer.keys.nbytes
    assert torch.equal(layer.keys, keys[..., kept, :])
    assert torch.equal(layer.values, values[..., kept, :])
    more = states(1, 2)
    assert torch.equal(layer.update(more, more)[0], torch.cat([keys[..., kept, :], more], dim=-2))


def test_going_back_by_little_keeps_the_room() -> None:
    layer = SpareLayer()
    layer.update(states(1_000, 0), states(1_000, 1))
    place = layer.keys.data_ptr()
    layer.crop(-SPARE)
    assert layer.keys.data_ptr() == place


def test_reset_forgets_all() -> None:
    layer = SpareLayer()
    layer.update(states(7, 0), states(7, 1))
    layer.reset()
    assert layer.get_seq_length() == 0
    assert torch.equal(layer.update(states(2, 2), states(2, 3))[0], states(2, 2))


@pytest.mark.parametrize("grower", ["source", "slice"])
def test_growing_after_a_cut_leaves_a_slice_as_it_is(grower: str) -> None:
    loaded = tiny("llama")

    def feed(cache, ids):
        return forward(loaded.model, make_inputs(ids, past=kv_cache.tokens(cache), device=loaded.device), cache).logits

    source = kv_cache.new_cache(loaded.model.config)
    feed(source, list(range(10, 20)))
    view = kv_cache.slice_cache(source, 8)
    kept, grown = (view, source) if grower == "source" else (source, view)
    before = [(layer.keys.clone(), layer.values.clone()) for layer in kept.layers]
    kv_cache.cut_back(grown, 4)
    feed(grown, [99] * 6)
    for layer, (keys, values) in zip(kept.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)
        assert torch.equal(layer.values, values)


def test_the_oldest_leave_and_the_others_stay_as_they_were() -> None:
    layer, plain = SpareLayer(), DynamicLayer()
    torch.manual_seed(0)
    for count in (5, *[1] * 200):
        keys, values = torch.randn(1, 2, count, 4), torch.randn(1, 2, count, 4)
        layer.update(keys, values)
        plain.update(keys, values)
        if layer.get_seq_length() > 7:
            layer.evict(layer.get_seq_length() - 7)
        assert layer.keys is not None and layer.values is not None
        held = layer.get_seq_length()
        assert held <= 7
        assert torch.equal(layer.keys, plain.keys[..., -held:, :])
        assert torch.equal(layer.values, plain.values[..., -held:, :])


def test_what_a_view_holds_stays_when_the_oldest_leave_and_room_is_not_copied_at_each_step() -> None:
    layer = SpareLayer()
    layer.update(torch.randn(1, 1, 6, 2), torch.randn(1, 1, 6, 2))
    layer.share()
    assert layer.keys is not None
    view, before = layer.keys, layer.keys.clone()
    places = []
    for _ in range(40):
        layer.evict(1)
        layer.update(torch.randn(1, 1, 1, 2), torch.randn(1, 1, 1, 2))
        places.append(layer.keys.untyped_storage().data_ptr())
    assert torch.equal(view, before)
    assert len(set(places)) == 1


def test_all_may_leave() -> None:
    layer = SpareLayer()
    layer.evict(0)  # nothing is held yet
    layer.update(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    layer.evict(2)
    assert layer.get_seq_length() == 0
    layer.update(torch.full((1, 1, 1, 2), 3.0), torch.ones(1, 1, 1, 2))
    assert layer.keys is not None
    assert layer.keys.tolist() == [[[[3.0, 3.0]]]]
