"""The JSON of records: every number comes back bit for bit. (That of traces and answers is `engine.plain_json`.)

An array is {"dtype", "shape", "data": base64 of its little-endian numbers}, bytes are their text where they have one
and else a list, a float that JSON cannot write is {"float": "nan"}, a sentence that can be said in other words is
{"said": its key, "values", "text": itself in English}. Where any JSON may stand, an object whose only name is "float"
has its value in a list of one, so that it stands for no number.
"""

import base64
import binascii
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.said import Said, Sentence, said, said_again
from engine.typed_json import MAX_AXES, MAX_INT, TypedJson, at, byte_list, short, unlike, whole_text
from engine.values import ExperimentError

#: Array types that a file may name, by the kind that a field wants.
DTYPES = {
    "i": ("int32", "int64", "int16", "int8", "uint8"),
    "f": ("float32", "float64", "float16"),
    "b": ("bool",),
}
#: Characters of a sentence, and sentences inside one another.
MAX_SENTENCE, SENTENCE_DEPTH = 1_000, 4

#: What stands for the floats that JSON cannot write.
NOT_FINITE = ("nan", "inf", "-inf")

#: What a sentence is made of beside sentences.
_Held = int | float | bool | str


class ExactJson(TypedJson):
    """The format of a record's parts."""

    def write_float(self, value: float) -> Any:
        return value if math.isfinite(value) else {"float": repr(value)}

    def write_bytes(self, value: bytes) -> Any:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return list(value)

    def write_array(self, value: npt.NDArray[Any]) -> Any:
        data = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": base64.b64encode(data).decode("ascii")}

    def write_sentence(self, value: Said) -> Any:
        return {"said": value.key, "values": self.encode(value.values), "text": str(value)}

    def is_float(self, value: dict[str, Any]) -> bool:
        return list(value) == ["float"] and value["float"] in NOT_FINITE

    def write_object(self, value: dict[str, Any]) -> dict[str, Any]:
        return {"float": [value["float"]]} if list(value) == ["float"] else value

    def read_object(self, value: dict[str, Any]) -> dict[str, Any]:
        escaped = list(value) == ["float"] and isinstance(value["float"], list) and len(value["float"]) == 1
        return {"float": value["float"][0]} if escaped else value

    def read_float(self, value: Any, path: str) -> float:
        if type(value) is float and math.isfinite(value):
            return value
        if type(value) is int and abs(value) < MAX_INT:
            return float(value)
        if isinstance(value, dict) and self.is_float(value):
            return float(value["float"])
        raise unlike(path, said("a_number"), value)

    def read_bytes(self, value: Any, path: str) -> bytes:
        if isinstance(value, str):
            return whole_text(value, path).encode("utf-8")
        found = byte_list(value)
        if found is None:
            raise unlike(path, said("text_or_bytes"), value)
        return found

    def read_array(self, wanted: np.dtype[Any], value: Any, path: str) -> npt.NDArray[Any]:
        if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data"}:
            raise unlike(path, said("an_array"), value)
        dtype, shape, data = value["dtype"], value["shape"], value["data"]
        if not isinstance(dtype, str) or dtype not in DTYPES[wanted.kind]:
            raise unlike(at(path, "dtype"), said("one_of", known=", ".join(DTYPES[wanted.kind])), dtype)
        if not isinstance(shape, list) or len(shape) > MAX_AXES or not all(_is_size(size) for size in shape):
            raise unlike(at(path, "shape"), said("a_list_of_sizes"), shape)
        try:
            raw = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
        except (binascii.Error, ValueError):
            raise ExperimentError(at(path, "data"), said("not_base64")) from None
        numbers = np.dtype(dtype).newbyteorder("<")
        if len(raw) != math.prod(shape) * numbers.itemsize:
            raise ExperimentError(path, said("no_such_array", count=len(raw), dtype=dtype, shape=short(shape)))
        if dtype == "bool" and raw.strip(b"\x00\x01"):
            raise ExperimentError(path, said("array_of_truths"))
        found = np.frombuffer(raw, dtype=numbers).astype(dtype)
        try:
            return found.reshape(shape)
        except ValueError:  # none at all of very many
            raise ExperimentError(path, said("no_such_array", count=0, dtype=dtype, shape=short(shape))) from None

    def read_sentence(self, value: Any, path: str) -> Sentence:
        return self._sentence(value, path, SENTENCE_DEPTH)

    def _sentence(self, value: Any, path: str, depth: int) -> Sentence:
        """A sentence in the words of today; the text that was kept where its key or its values are none of ours."""
        if depth == 0 or not isinstance(value, dict) or set(value) != {"said", "values", "text"}:
            raise unlike(path, said("a_sentence"), value)
        key, text = (self.decode(str, value[name], at(path, name)) for name in ("said", "text"))
        if not isinstance(value["values"], dict):
            raise unlike(at(path, "values"), said("an_object"), value["values"])
        values = {}
        for name, item in value["values"].items():
            place = at(path, f"values.{short(name)[1:-1]}")
            values[whole_text(name, place)] = (
                self._sentence(item, place, depth - 1) if _is_sentence(item) else self.decode(_Held, item, place)
            )
        again = said_again(key, values, text)
        return again if len(again) <= MAX_SENTENCE else text[:MAX_SENTENCE]


def _is_sentence(value: Any) -> bool:
    return isinstance(value, dict) and "said" in value


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


EXACT = ExactJson()
