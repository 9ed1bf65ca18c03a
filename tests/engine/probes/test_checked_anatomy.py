"""A model that does not add its parts up as they were found to lie is refused, in any type of numbers."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import BitNetConfig, Glm4Config, GPTNeoXConfig, PreTrainedConfig, PreTrainedModel

from engine.anatomy import AnatomyError, anatomy
from engine.model import LoadedModel
from engine.probes import checked_anatomy as checking
from engine.probes.attention import attention
from engine.probes.checked_anatomy import checked_anatomy
from engine.probes.feed_forward import feed_forward
from engine.probes.layer import layer
from engine.probes.lens import lens
from engine.probes.lens_map import lens_map
from engine.probes.norms import norms
from engine.probes.residual import residual
from tests.engine.models import CONFIGS, tiny
from tests.engine.probes.test_feed_forward import SHAPE, other
from tests.engine.probes.test_lens import talk

NEOX = GPTNeoXConfig(**SHAPE)
#: Attention and feed-forward side by side; two further norms in a layer; a norm before the output projection.
OTHERWISE = {"neox": NEOX, "glm4": Glm4Config(**SHAPE, head_dim=8), "bitnet": BitNetConfig(**SHAPE)}
TYPES = [torch.float32, torch.bfloat16, torch.float16]


def more(model: PreTrainedModel, layer: int, added: torch.Tensor) -> None:
    """Let a layer add something else too, before the library takes down what the layer gave."""
    block = anatomy(model).blocks[layer]
    block.module.register_forward_hook(lambda _, __, gave: gave + added, prepend=True)


@pytest.mark.parametrize("probe", [lens, lens_map, layer, feed_forward, residual, norms])
@pytest.mark.parametrize("config", OTHERWISE.values(), ids=OTHERWISE)
def test_no_number_is_shown_of_layers_that_join_their_parts_in_another_way(
    config: PreTrainedConfig, probe: Callable[..., Any]
) -> None:
    conversation = talk(other(config), 1)
    with pytest.raises(AnatomyError, match="computes its layer 0 in a way that this view does not know"):
        probe(conversation)


def test_attention_is_shown_however_a_layer_joins_its_parts() -> None:
    found = attention(talk(other(NEOX), 1), layer=1)
    assert found.weights.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_layers_one_after_the_other_hold_in_every_type_of_numbers(dtype: torch.dtype) -> None:
    one_after_the_other = other(GPTNeoXConfig(**SHAPE, use_parallel_residual=False))
    for loaded in (one_after_the_other, *(tiny(name) for name in CONFIGS if name != "hybrid")):
        checked_anatomy(copy.deepcopy(loaded.model).to(dtype))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_layers_side_by_side_are_refused_in_every_type_of_numbers(dtype: torch.dtype) -> None:
    with pytest.raises(AnatomyError, match="layer 0"):
        checked_anatomy(copy.deepcopy(other(NEOX).model).to(dtype))


def test_a_long_stream_does_not_hide_what_a_layer_adds_otherwise() -> None:
    model = copy.deepcopy(tiny("llama").model).to(torch.bfloat16)
    with torch.no_grad():
        model.get_input_embeddings().weight[:, 0] += 10_000
    checked_anatomy(copy.deepcopy(model))
    more(model, 0, torch.arange(32) > 0)
    with pytest.raises(AnatomyError, match="layer 0"):
        checked_anatomy(model)


def test_logits_that_are_scaled_otherwise_are_refused() -> None:
    model = copy.deepcopy(tiny("llama").model)
    model.config.logit_scale = 2.0  # the head of this family knows nothing of it
    with pytest.raises(AnatomyError, match=r"its output head .* differ by 50\.0%"):
        checked_anatomy(model)


def test_a_last_layer_that_does_more_is_refused() -> None:
    model = copy.deepcopy(tiny("llama").model)
    more(model, 1, torch.arange(32.0))
    with pytest.raises(AnatomyError, match="its last layer or final norm"):
        checked_anatomy(model)


def test_a_layer_that_leaves_the_stream_alone_is_refused_with_a_number() -> None:
    model = copy.deepcopy(tiny("llama").model)
    block = anatomy(model).blocks[0]
    block.module.register_forward_hook(lambda _, given, __: given[0], prepend=True)
    with pytest.raises(AnatomyError, match=r"its layer 0 .* differ by 100\.0%"):
        checked_anatomy(model)


def test_a_model_is_tried_once(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    checked_anatomy(llama.model)
    monkeypatch.setattr(checking, "forward", None)
    checked_anatomy(llama.model)
