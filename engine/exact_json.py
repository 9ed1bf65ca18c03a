"""Dataclasses as JSON and back, number for number, read by the type hints that the dataclasses themselves have.

An array is {"dtype", "shape", "data": base64 of its little-endian numbers}, bytes are their text where they have one
and else a list, a float that JSON cannot write is {"float": "nan"}, a sentence that can be said in other words is
{"said": its key, "values", "text": itself in English}. Nothing of the file names a class: what is wanted
where is known before, and what is something else is refused with its path.
"""

import base64
import binascii
import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.said import Said, Sentence, said, said_again
from engine.values import ExperimentError

#: Levels of lists and objects where any JSON may stand.
ANY_DEPTH = 12
#: Whole numbers beyond that have no place in an array.
MAX_INT = 2**63
#: Array types that a file may name, by the kind that a field wants.
DTYPES = {
    "i": ("int32", "int64", "int16", "int8", "uint8"),
    "f": ("float32", "float64", "float16"),
    "b": ("bool",),
}
MAX_AXES = 4
#: Characters of a sentence, and sentences inside one another.
MAX_SENTENCE, SENTENCE_DEPTH = 1_000, 4

_KINDS = {int: "a_whole_number", str: "a_text", bool: "true_or_false"}
#: What a sentence is made of beside sentences.
_Held = int | float | bool | str


def encode(value: Any) -> Any:
    """Plain JSON values. Raises TypeError for a value of another kind than a probe or a trace may hold."""
    if isinstance(value, Said):
        return {"said": value.key, "values": encode(value.values), "text": str(value)}
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, bytes):
        return _bytes(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: encode(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    raise TypeError(f"a {type(value).__name__} cannot be written to a file")


def decode(kind: Any, value: Any, path: str = "") -> Any:
    """The value of the type `kind` that the JSON stands for. Raises `ExperimentError` with the path of what is not."""
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast(type, kind), value, path)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is np.ndarray:
        return _read_array(np.dtype(typing.get_args(inner[1])[0]), value, path)
    if origin is tuple:
        return _tuple(inner, value, path)
    if origin in (dict, Mapping):
        return _mapping(inner, value, path)
    if origin in (types.UnionType, typing.Union):
        return _union(inner, value, path)
    if origin is typing.Literal:
        if not any(type(value) is type(known) and value == known for known in inner):
            raise _unlike(path, said("one_of", known=", ".join(map(repr, inner))), value)
        return value
    return _plain(kind, value, path)


def _plain(kind: Any, value: Any, path: str) -> Any:
    if kind is Any:
        return _anything(value, path, ANY_DEPTH)
    if kind is bytes:
        return _read_bytes(value, path)
    if kind is Said:
        return _sentence(value, path, SENTENCE_DEPTH)
    if kind is float:
        return _float(value, path)
    if kind is str and isinstance(value, str):
        return _text(value, path)
    if kind is int and type(value) is int and abs(value) < MAX_INT:
        return value
    if kind is bool and type(value) is bool:
        return value
    if kind is types.NoneType and value is None:
        return None
    raise _unlike(path, said(_KINDS.get(kind, "nothing")), value)


def _dataclass(kind: type, value: Any, path: str) -> Any:
    hints, optional = _fields(kind)
    if not isinstance(value, dict):
        raise _unlike(path, said("an_object"), value)
    for name in value:
        if name not in hints:
            raise ExperimentError(_at(path, _short(name)[1:-1]), said("unknown_field"))
    for name in hints:
        if name not in value and name not in optional:
            raise ExperimentError(_at(path, name), said("missing_field"))
    return kind(**{name: decode(hints[name], item, _at(path, name)) for name, item in value.items()})


@cache
def _fields(kind: type) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of a dataclass' fields, and those fields that have a default."""
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    optional = frozenset(item.name for item in fields if item.default is not dataclasses.MISSING)
    return {item.name: hints[item.name] for item in fields}, optional


def _tuple(inner: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _unlike(path, said("a_list"), value)
    if inner[-1] is Ellipsis:
        return tuple(decode(inner[0], item, f"{path}[{index}]") for index, item in enumerate(value))
    if len(value) != len(inner):
        raise _unlike(path, said("a_list_of", count=len(inner)), value)
    kinds = zip(inner, value, strict=True)
    return tuple(decode(kind, item, f"{path}[{index}]") for index, (kind, item) in enumerate(kinds))


def _mapping(inner: tuple[Any, ...], value: Any, path: str) -> dict[Any, Any]:
    key_kind, item_kind = inner
    if not isinstance(value, dict):
        raise _unlike(path, said("an_object"), value)
    found = {}
    for key, item in value.items():
        if key_kind is int and not (key.removeprefix("-").isdecimal() and len(key) <= 19 and key.isascii()):
            raise _unlike(path, said("numbers_as_names"), key)
        read = int(key) if key_kind is int else _text(key, path)
        found[read] = decode(item_kind, item, _at(path, _short(key)[1:-1]))
    return found


def _union(inner: tuple[Any, ...], value: Any, path: str) -> Any:
    """The first kind that takes the value; a whole number stays one where whole numbers may stand."""
    if value is None and types.NoneType in inner:
        return None
    kinds = [kind for kind in inner if kind is not types.NoneType]
    if type(value) is int and int in kinds:
        kinds = [int]
    for kind in kinds[:-1]:
        try:
            return decode(kind, value, path)
        except ExperimentError:
            continue
    return decode(kinds[-1], value, path)


def _float(value: Any, path: str) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int and abs(value) < MAX_INT:
        return float(value)
    if isinstance(value, dict) and list(value) == ["float"] and value["float"] in ("nan", "inf", "-inf"):
        return float(value["float"])
    raise _unlike(path, said("a_number"), value)


def _text(value: str, path: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ExperimentError(path, said("half_character"))
    return value


def _sentence(value: Any, path: str, depth: int) -> Sentence:
    """A sentence in the words of today; the text that was kept where its key or its values are none of ours."""
    if depth == 0 or not isinstance(value, dict) or set(value) != {"said", "values", "text"}:
        raise _unlike(path, said("a_sentence"), value)
    key, text = (decode(str, value[name], _at(path, name)) for name in ("said", "text"))
    if not isinstance(value["values"], dict):
        raise _unlike(_at(path, "values"), said("an_object"), value["values"])
    values = {}
    for name, item in value["values"].items():
        at = _at(path, f"values.{_short(name)[1:-1]}")
        values[_text(name, at)] = _sentence(item, at, depth - 1) if _is_sentence(item) else decode(_Held, item, at)
    again = said_again(key, values, text)
    return again if len(again) <= MAX_SENTENCE else text[:MAX_SENTENCE]


def _is_sentence(value: Any) -> bool:
    return isinstance(value, dict) and "said" in value


def _anything(value: Any, path: str, depth: int) -> Any:
    if depth == 0:
        raise ExperimentError(path, said("nested_too_deeply"))
    if isinstance(value, dict):
        if list(value) == ["float"]:
            return _float(value, path)
        return {_text(key, path): _anything(item, path, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_anything(item, path, depth - 1) for item in value]
    if isinstance(value, str):
        return _text(value, path)
    return value


def _bytes(data: bytes) -> str | list[int]:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return list(data)


def _read_bytes(value: Any, path: str) -> bytes:
    if isinstance(value, str):
        return _text(value, path).encode("utf-8")
    if isinstance(value, list) and all(type(item) is int and 0 <= item < 256 for item in value):
        return bytes(value)
    raise _unlike(path, said("text_or_bytes"), value)


def _array(value: npt.NDArray[Any]) -> dict[str, Any]:
    data = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
    return {"dtype": value.dtype.name, "shape": list(value.shape), "data": base64.b64encode(data).decode("ascii")}


def _read_array(wanted: np.dtype[Any], value: Any, path: str) -> npt.NDArray[Any]:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data"}:
        raise _unlike(path, said("an_array"), value)
    dtype, shape, data = value["dtype"], value["shape"], value["data"]
    if not isinstance(dtype, str) or dtype not in DTYPES[wanted.kind]:
        raise _unlike(_at(path, "dtype"), said("one_of", known=", ".join(DTYPES[wanted.kind])), dtype)
    if not isinstance(shape, list) or len(shape) > MAX_AXES or not all(_is_size(size) for size in shape):
        raise _unlike(_at(path, "shape"), said("a_list_of_sizes"), shape)
    try:
        raw = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        raise ExperimentError(_at(path, "data"), said("not_base64")) from None
    numbers = np.dtype(dtype).newbyteorder("<")
    if len(raw) != math.prod(shape) * numbers.itemsize:
        raise ExperimentError(path, said("no_such_array", count=len(raw), dtype=dtype, shape=_short(shape)))
    if dtype == "bool" and raw.strip(b"\x00\x01"):
        raise ExperimentError(path, said("array_of_truths"))
    return np.frombuffer(raw, dtype=numbers).astype(dtype).reshape(shape)


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _unlike(path: str, wanted: Said, value: Any) -> ExperimentError:
    return ExperimentError(path, said("wanted_got", wanted=wanted, got=_short(value)))


def _short(value: Any) -> str:
    """What was found, in a few characters whatever its size."""
    if isinstance(value, list):
        return said("a_list")
    if isinstance(value, dict):
        return said("an_object")
    return repr(value[:60] if isinstance(value, str) else value)
