"""The JSON of traces and of probes' answers, for people and programs to read. (That of records is `engine.exact_json`.)

An array is nested lists, first axis outermost, its floats in the fewest digits that read back to the same; bytes are a
list; a float that is not finite is null, and null is read back as −inf, which is what it mostly stood for; a
sentence is its English text.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.said import Said, Sentence, said
from engine.typed_json import MAX_AXES, MAX_INT, TypedJson, byte_list, unlike
from engine.values import ExperimentError

_LISTS = {"f": "a_list_of_numbers", "i": "a_list_of_whole_numbers", "b": "a_list_of_truths"}


class PlainJson(TypedJson):
    """The format of a trace's parts."""

    def write_float(self, value: float) -> Any:
        return value if math.isfinite(value) else None

    def write_bytes(self, value: bytes) -> Any:
        return list(value)

    def write_array(self, value: npt.NDArray[Any]) -> Any:
        if value.dtype.kind != "f":
            return value.tolist()
        if value.ndim > 1:
            return [self.write_array(row) for row in value]
        return [float(str(number)) if np.isfinite(number) else None for number in value]

    def write_sentence(self, value: Said) -> Any:
        return str(value)

    def is_float(self, value: dict[str, Any]) -> bool:  # noqa: ARG002 - no object stands for one
        return False

    def write_object(self, value: dict[str, Any]) -> dict[str, Any]:
        return value

    def read_object(self, value: dict[str, Any]) -> dict[str, Any]:
        return value

    def read_float(self, value: Any, path: str) -> float:
        if value is None:
            return -math.inf
        if _is_number("f", value):
            return float(value)
        raise unlike(path, said("a_number"), value)

    def read_bytes(self, value: Any, path: str) -> bytes:
        found = byte_list(value)
        if found is None:
            raise unlike(path, said("a_list_of_bytes"), value)
        return found

    def read_array(self, wanted: np.dtype[Any], value: Any, path: str) -> npt.NDArray[Any]:
        if not isinstance(value, list):
            raise unlike(path, said("a_list_of_numbers"), value)
        numbers = self._numbers(wanted.kind, value, path, MAX_AXES)
        try:
            return np.array(numbers, dtype=wanted)
        except (ValueError, OverflowError):  # rows of several lengths, numbers beyond the type
            raise ExperimentError(path, said("lists_no_array", dtype=wanted.name)) from None

    def read_sentence(self, value: Any, path: str) -> Sentence:
        raise unlike(path, said("a_text"), value)  # a text is one already; nothing else is

    def _numbers(self, kind: str, value: Any, path: str, axes: int) -> Any:
        if isinstance(value, list) and axes:
            return [self._numbers(kind, item, path, axes - 1) for item in value]
        if value is None and kind == "f":
            return -math.inf
        if not _is_number(kind, value):
            raise unlike(path, said(_LISTS[kind]), value)
        return value


def _is_number(kind: str, value: Any) -> bool:
    if type(value) is int:
        return kind != "b" and abs(value) < MAX_INT
    return type(value) is (bool if kind == "b" else float) and kind != "i" and math.isfinite(value)


PLAIN = PlainJson()
