"""Where a model is put, and in which numbers: names of the command line as torch's own values."""

import torch

from engine.catalog import ModelError
from engine.said import said

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEVICES = ("cuda", "mps", "cpu")


def pick_device(name: str) -> torch.device:
    """The device of that name, or the best there is for "auto". Raises `ModelError` where it cannot be used."""
    usable = [kind for kind in DEVICES if _usable(kind)]
    if name == "auto":
        return torch.device(usable[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in usable or (device.index or 0) >= _count(device.type):
        raise ModelError(said("device_unusable", name=name, usable=", ".join(usable)))
    return device


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of that name, or the device's usual one for "auto". Raises `ModelError` for another name."""
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise ModelError(said("dtype_unknown", name=name, allowed=", ".join(DTYPES)))
    return DTYPES[name]


def _usable(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return kind == "cpu" or torch.backends.mps.is_available()


def _count(kind: str) -> int:
    return torch.cuda.device_count() if kind == "cuda" else 1
