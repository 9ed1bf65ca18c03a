"""Weights of 4 bits: bitsandbytes' nf4 with scales that are quantised too; what is computed is in `dtype`."""

import importlib.util
from typing import TYPE_CHECKING

import torch

from engine.catalog import ModelError

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig


def four_bits(device: torch.device, dtype: torch.dtype) -> "BitsAndBytesConfig":
    """The options of `from_pretrained`. Raises `ModelError` where the package or the device is missing."""
    missing = []
    if importlib.util.find_spec("bitsandbytes") is None:
        missing.append("the package bitsandbytes is not installed")
    if device.type != "cuda":
        missing.append(f"the device is {device.type}")
    if missing:
        raise ModelError(
            f"4bit needs the package bitsandbytes and an NVIDIA GPU: {' and '.join(missing)}; "
            "leave --quantize out, or take --dtype bfloat16, which halves float32"
        )
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
