"""Tensors on a device that is not here: like those of MPS they have no float64, and do not mix with the CPU's."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Far(torch.Tensor):
    """A tensor on the far device; `.cpu()` brings it here."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.Tensor.double:
            raise TypeError("the far device has no float64")
        if func is torch.Tensor.cpu:
            with torch._C.DisableTorchFunctionSubclass():
                return args[0].as_subclass(torch.Tensor)
        if any(type(item) is torch.Tensor and item.dim() for item in args):
            raise RuntimeError("tensors on two devices")
        return super().__torch_function__(func, types, args, kwargs or {})


def far(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(Far)
