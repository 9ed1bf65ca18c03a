"""What a probe gave as JSON: plain lists and numbers, of a size that is known before.

The fields are those of the probe's dataclasses. Arrays are nested lists, bytes of a token are its text and the bytes
themselves, a number that is not finite is null.
"""

import dataclasses
from typing import Any

import numpy as np

from engine.experiment import ExperimentError
from engine.said import said
from engine.trace_json import to_json

ANSWER_VERSION = 1


def answer_to_json(
    name: str, model_id: str, arguments: dict[str, Any], result: Any, *, max_values: int
) -> dict[str, Any]:
    """The answer as plain JSON values. Raises `ExperimentError` where it holds more than `max_values` values."""
    values = count(result)
    if values > max_values:
        raise ExperimentError("probe", said("answer_too_large", count=values, most=max_values))
    return {
        "version": ANSWER_VERSION,
        "probe": name,
        "model": model_id,
        "arguments": encode(arguments),
        "result": encode(result),
    }


def count(value: Any) -> int:
    """Numbers, texts and bytes that the value holds."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    if isinstance(value, bytes):
        return 1 + len(value)
    if dataclasses.is_dataclass(value):
        return sum(count(getattr(value, item.name)) for item in dataclasses.fields(value))
    if isinstance(value, dict | list | tuple):
        return sum(count(item) for item in (value.values() if isinstance(value, dict) else value))
    return 1


def encode(value: Any) -> Any:
    """Plain JSON values. Raises TypeError for a value of another kind than a probe may give."""
    if isinstance(value, bytes):
        return {"text": value.decode("utf-8", "replace"), "bytes": list(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: encode(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, np.ndarray | str | int | float | None):
        return to_json(value)
    raise TypeError(f"a probe gave a {type(value).__name__}, which has no JSON")
