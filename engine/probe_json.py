"""What a probe gave as JSON, of a size that is known before.

It has the fields of the probe's dataclasses in plain JSON (`engine.plain_json`), but that the bytes of a token are its
text and the bytes themselves.
"""

import dataclasses
from typing import Any

import numpy as np

from engine.experiment import ExperimentError
from engine.plain_json import PlainJson
from engine.said import said

ANSWER_VERSION = 1


class AnswerJson(PlainJson):
    """The format of an answer."""

    def write_bytes(self, value: bytes) -> Any:
        return {"text": value.decode("utf-8", "replace"), "bytes": list(value)}


encode = AnswerJson().encode


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
