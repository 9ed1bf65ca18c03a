"""Weights of 4 bits: bitsandbytes' nf4 with scales that are quantised too; what is computed is in `dtype`."""

import importlib.util
from typing import TYPE_CHECKING

import torch

from engine.catalog import ModelError
from engine.said import said

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig


def four_bits(device: torch.device, dtype: torch.dtype) -> "BitsAndBytesConfig":
    """The options of `from_pretrained`. Raises `ModelError` where the package or the device is missing."""
    no_package, no_gpu = importlib.util.find_spec("bitsandbytes") is None, device.type != "cuda"
    if no_package or no_gpu:
        key = "no_bitsandbytes_device_is" if no_package and no_gpu else "no_bitsandbytes" if no_package else "device_is"
        raise ModelError(said("four_bits_needs", missing=said(key, device=device.type)))
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )
