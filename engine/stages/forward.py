"""One forward of the model. The only file that knows how a model takes its cache."""

import functools
import inspect
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import Cache, PreTrainedModel

from engine import freed_memory
from engine.stages.inputs import Inputs
from engine.trace import Shape

#: Positions fed at once from which the activations on a CPU are so large that what they leave free goes back meanwhile.
LONG = 1_024


@dataclass(frozen=True, eq=False)
class Forwarded:
    """What one forward gave."""

    logits: torch.Tensor  # [vocab] float32, of the last position
    shape: Shape  # of the model's own logits output
    seconds: float
    states: tuple[torch.Tensor, ...] = ()  # [n, hidden] of the positions fed, before each layer; the last is normed


@functools.cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    """Names that a function accepts."""
    return frozenset(inspect.signature(function).parameters)


def _arguments(model: PreTrainedModel, inputs: Inputs, cache: Cache | None) -> dict[str, Any]:
    """Only the last position goes through the LM head, as in `generate`."""
    accepted = _parameters(type(model).forward)
    arguments: dict[str, Any] = {
        "input_ids": inputs.input_ids,
        "attention_mask": inputs.attention_mask,
        "position_ids": inputs.position_ids,
        "use_cache": cache is not None,
        # Older families know the cache by its former name only.
        "cache" if "cache" in accepted else "past_key_values": cache,
        "logits_to_keep": 1,
    }
    if "logits_to_keep" not in accepted:
        del arguments["logits_to_keep"]
    return arguments


def forward(model: PreTrainedModel, inputs: Inputs, cache: Cache | None, *, states: bool = False) -> Forwarded:
    """Run the model on `inputs`; `cache` grows by their positions in place, None computes without a cache.

    Only the last row goes through the LM head, as in `generate`; `states` keeps the last position's hidden states.
    Waits for the device, so that `seconds` is true.
    """
    arguments = _arguments(model, inputs, cache) | {"output_hidden_states": states}
    started = time.perf_counter()
    is_long = inputs.input_ids.shape[1] >= LONG and inputs.input_ids.device.type == "cpu"
    with torch.inference_mode(), freed_memory.giving_back() if is_long else nullcontext():
        output = model(**arguments, return_dict=True)
        logits = output.logits[0, -1].to(dtype=torch.float32, copy=True)
    if logits.device.type != "cpu":
        torch.accelerator.synchronize(logits.device)
    kept = tuple(state[0] for state in output.hidden_states) if states else ()
    return Forwarded(logits, tuple(output.logits.shape), time.perf_counter() - started, kept)


def forward_newest(model: PreTrainedModel, inputs: Inputs, cache: Cache, count: int) -> torch.Tensor:
    """Logits [count, vocab] float32 of the newest positions; `cache` grows in place."""
    arguments = _arguments(model, inputs, cache)
    if "logits_to_keep" in arguments:
        arguments["logits_to_keep"] = count
    with torch.inference_mode():
        logits: torch.Tensor = model(**arguments, return_dict=True).logits[0, -count:].float()
    return logits


def forward_rows(model: PreTrainedModel, inputs: Inputs, cache: Cache) -> torch.Tensor:
    """Logits [rows, vocab] float32 of the last position of each row; `cache` grows in place.

    They differ in the last digits from what `forward` gives for each row alone.
    """
    with torch.inference_mode():
        logits: torch.Tensor = model(**_arguments(model, inputs, cache), return_dict=True).logits[:, -1].float()
    if logits.device.type != "cpu":
        torch.accelerator.synchronize(logits.device)
    return logits
