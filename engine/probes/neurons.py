"""The neurons of feed-forward layers, caught in the act: what each down projection multiplies, for one position."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from engine.anatomy import AnatomyError, Block, anatomy, no_part
from engine.said import said
from engine.sizes import DOWN

_LENGTHS: weakref.WeakKeyDictionary[nn.Module, torch.Tensor] = weakref.WeakKeyDictionary()


@dataclass(eq=False)
class Fired:
    """One layer at the newest position of a forward; F neurons."""

    projection: nn.Module  # the down projection
    activations: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # [F] float32, what it multiplies
    output: torch.Tensor = field(default_factory=lambda: torch.empty(0))  # [hidden] float32, of the whole feed-forward

    @property
    def columns(self) -> torch.Tensor:
        """[F, hidden] float32: what each neuron writes at activation 1."""
        return _columns(self.projection).float()

    @property
    def bias(self) -> torch.Tensor | None:
        """[hidden] float32, added whatever fires."""
        bias = getattr(self.projection, "bias", None)
        return None if bias is None else bias.float()


def down_projection(block: Block) -> nn.Module:
    """The linear map from the neurons of a layer to the stream. Raises `AnatomyError` where there is no such one."""
    module = block.feed_forward
    if any(name.rpartition(".")[2] == "experts" for name, _ in module.named_modules()):
        raise AnatomyError(said("experts", layer=block.index, module=type(module).__name__))
    for name in DOWN:
        found = getattr(module, name, None)
        if isinstance(found, nn.Linear | Conv1D):
            return found
    raise AnatomyError(no_part(module, said("part_down_projection", layer=block.index), DOWN))


@contextmanager
def firing(model: PreTrainedModel) -> Iterator[dict[int, Fired]]:
    """Catch the neurons of each layer that has a list of them, at the newest position of this thread's forwards.

    A later forward overwrites an earlier one. Nothing is left on the model afterwards.
    """
    caught: dict[int, Fired] = {}
    thread = threading.get_ident()
    with ExitStack() as hooks:
        for block in anatomy(model).blocks:
            try:
                record = Fired(down_projection(block))
            except AnatomyError:
                continue
            caught[block.index] = record
            for handle in _hook(record, block.feed_forward, thread):
                hooks.callback(handle.remove)
        yield caught


def _hook(record: Fired, feed_forward: nn.Module, thread: int) -> tuple[Any, Any]:
    def activations(_: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        if threading.get_ident() == thread:
            record.activations = _newest(given[0])

    def output(_: nn.Module, __: Any, gave: torch.Tensor) -> None:
        if threading.get_ident() == thread:
            record.output = _newest(gave)

    return record.projection.register_forward_pre_hook(activations), feed_forward.register_forward_hook(output)


def _newest(values: torch.Tensor) -> torch.Tensor:
    """The last row of [..., n], as a float32 copy of its own."""
    return values.detach().reshape(-1, values.shape[-1])[-1].to(torch.float32, copy=True)


def lengths(projection: nn.Module) -> torch.Tensor:
    """Euclidean length [F] float32 of each neuron's column; worked out once a model, whose weights do not change."""
    found = _LENGTHS.get(projection)
    if found is None:
        found = _LENGTHS[projection] = torch.linalg.vector_norm(_columns(projection), dim=1, dtype=torch.float32)
    return found


def _columns(projection: nn.Module) -> torch.Tensor:
    """The weight as [F, hidden]: GPT-2 keeps it that way round, a Linear the other."""
    weight: torch.Tensor = projection.weight  # type: ignore[assignment]  # a linear map has a matrix
    return weight if isinstance(projection, Conv1D) else weight.T
