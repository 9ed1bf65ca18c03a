"""The JSON of records: every number comes back bit for bit. (That of traces and answers is `engine.plain_json`.)

An array is {"dtype", "shape", "data": base64 of its little-endian numbers}, bytes are their text where they have one
and else a list, a float that JSON cannot write is {"float": "nan"}.
"""

import base64
import binascii
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.typed_json import MAX_AXES, MAX_INT, TypedJson, at, byte_list, short, unlike, whole_text
from engine.values import ExperimentError

#: Array types that a file may name, by the kind that a field wants.
DTYPES = {
    "i": ("int32", "int64", "int16", "int8", "uint8"),
    "f": ("float32", "float64", "float16"),
    "b": ("bool",),
}


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

    def is_float(self, value: dict[str, Any]) -> bool:
        return list(value) == ["float"]

    def read_float(self, value: Any, path: str) -> float:
        if type(value) is float and math.isfinite(value):
            return value
        if type(value) is int and abs(value) < MAX_INT:
            return float(value)
        if isinstance(value, dict) and self.is_float(value) and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        raise unlike(path, "a number", value)

    def read_bytes(self, value: Any, path: str) -> bytes:
        if isinstance(value, str):
            return whole_text(value, path).encode("utf-8")
        found = byte_list(value)
        if found is None:
            raise unlike(path, "text, or a list of bytes", value)
        return found

    def read_array(self, wanted: np.dtype[Any], value: Any, path: str) -> npt.NDArray[Any]:
        if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data"}:
            raise unlike(path, "an array", value)
        dtype, shape, data = value["dtype"], value["shape"], value["data"]
        if not isinstance(dtype, str) or dtype not in DTYPES[wanted.kind]:
            raise unlike(at(path, "dtype"), f"one of {', '.join(DTYPES[wanted.kind])}", dtype)
        if not isinstance(shape, list) or len(shape) > MAX_AXES or not all(_is_size(size) for size in shape):
            raise unlike(at(path, "shape"), "a list of sizes", shape)
        try:
            raw = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
        except (binascii.Error, ValueError):
            raise ExperimentError(at(path, "data"), "this is not base64") from None
        numbers = np.dtype(dtype).newbyteorder("<")
        if len(raw) != math.prod(shape) * numbers.itemsize:
            raise ExperimentError(path, f"{len(raw):,} bytes are no {dtype} array of shape {short(shape)}")
        if dtype == "bool" and raw.strip(b"\x00\x01"):
            raise ExperimentError(path, "an array of true and false holds 0 and 1 only")
        return np.frombuffer(raw, dtype=numbers).astype(dtype).reshape(shape)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


EXACT = ExactJson()
