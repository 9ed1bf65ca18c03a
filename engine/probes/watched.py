"""What modules are given and give while the model itself computes: hooks that are there for one forward only."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from engine.anatomy import Block
from engine.attention import Attended


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a module: the tensor it was given, its other arguments by name, and the tensor it gave."""

    given: torch.Tensor
    options: Mapping[str, Any]
    gave: torch.Tensor


@dataclass(frozen=True, eq=False)
class Seen:
    """What the model did at one position of one layer."""

    block: Block
    calls: Mapping[nn.Module, Call]  # of the modules in the layer
    attended: Attended  # n = 1; the keys and values of earlier positions come from the cache
    rotary: nn.Module | None
    position: int
    window: int | None  # positions that the layer sees, itself included; None for all
    mask_length: int | None  # positions that the run's attention mask covered; None for all

    def gave(self, module: nn.Module | None) -> torch.Tensor | None:
        """What a module gave; None where the model did without calling it."""
        call = None if module is None else self.calls.get(module)
        return None if call is None else call.gave


@contextmanager
def watching(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Call]]:
    """The last call of each of the `modules` made while this context is open; its hooks go with it.

    Hooks belong to the module, not to a thread: this is for the one thread that owns the model.
    """
    calls: dict[nn.Module, Call] = {}
    handles = [module.register_forward_hook(_keep(calls), with_kwargs=True) for module in modules]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _keep(calls: dict[nn.Module, Call]) -> Callable[..., None]:
    def hook(module: nn.Module, places: tuple[Any, ...], options: dict[str, Any], output: Any) -> None:
        given = next(one for one in (*places, *options.values()) if isinstance(one, torch.Tensor))
        gave = output[0] if isinstance(output, tuple) else output
        calls[module] = Call(given.clone(), options, gave.clone())

    return hook
