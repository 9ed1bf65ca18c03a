"""Dataclasses as JSON and back, read by the type hints that the dataclasses themselves have.

How floats, bytes, arrays and sentences stand there is up to a format: `engine.exact_json` keeps every bit, for records;
`engine.plain_json` is for people to read, for traces and answers. Nothing of the JSON names a class: what is wanted
where is known before, and what is something else is refused with its path.
"""

import dataclasses
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.said import Said, Sentence, said
from engine.values import ExperimentError

#: Levels of lists and objects where any JSON may stand.
ANY_DEPTH = 16
#: Axes of an array at most.
MAX_AXES = 4
#: Whole numbers beyond that have no place in an array, and none in the JSON of the endpoint.
MAX_INT = 2**63

_KINDS = {int: "a_whole_number", str: "a_text", bool: "true_or_false"}


class TypedJson(ABC):
    """A format, both ways."""

    @abstractmethod
    def write_float(self, value: float) -> Any: ...
    @abstractmethod
    def write_bytes(self, value: bytes) -> Any: ...
    @abstractmethod
    def write_array(self, value: npt.NDArray[Any]) -> Any: ...
    @abstractmethod
    def write_sentence(self, value: Said) -> Any: ...
    @abstractmethod
    def read_float(self, value: Any, path: str) -> float: ...
    @abstractmethod
    def read_bytes(self, value: Any, path: str) -> bytes: ...
    @abstractmethod
    def read_array(self, wanted: np.dtype[Any], value: Any, path: str) -> npt.NDArray[Any]: ...
    @abstractmethod
    def read_sentence(self, value: Any, path: str) -> Sentence: ...
    @abstractmethod
    def is_float(self, value: dict[str, Any]) -> bool:
        """True for an object that stands for a float where any JSON may stand."""

    @abstractmethod
    def write_object(self, value: dict[str, Any]) -> dict[str, Any]:
        """An object where any JSON may stand, its parts written already: one that `is_float` would take for another."""

    @abstractmethod
    def read_object(self, value: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `write_object`."""

    def encode(self, value: Any) -> Any:
        """Plain JSON values. Raises TypeError for a value of another kind than a probe or a trace may hold."""
        if isinstance(value, Said):
            return self.write_sentence(value)
        if value is None or isinstance(value, bool | str | int):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if isinstance(value, float):
            return self.write_float(value)
        if isinstance(value, np.ndarray):
            return self.write_array(value)
        if isinstance(value, bytes):
            return self.write_bytes(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {item.name: self.encode(getattr(value, item.name)) for item in dataclasses.fields(value)}
        if isinstance(value, Mapping):
            return {str(key): self._encode_any(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.encode(item) for item in value]
        raise TypeError(f"a {type(value).__name__} has no JSON")

    def _encode_any(self, value: Any) -> Any:
        """What stands in an object by a name that no dataclass gives: any JSON."""
        if isinstance(value, Mapping):
            return self.write_object({str(key): self._encode_any(item) for key, item in value.items()})
        if isinstance(value, list | tuple):
            return [self._encode_any(item) for item in value]
        return self.encode(value)

    def decode(self, kind: Any, value: Any, path: str = "") -> Any:
        """The value of the type `kind` that the JSON stands for; a field that has a default may be missing.

        Raises `ExperimentError` with the path of what is not.
        """
        if dataclasses.is_dataclass(kind):
            return self._dataclass(typing.cast(type, kind), value, path)
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is np.ndarray:
            return self.read_array(np.dtype(typing.get_args(inner[1])[0]), value, path)
        if origin is tuple:
            return self._tuple(inner, value, path)
        if origin in (dict, Mapping):
            return self._mapping(inner, value, path)
        if origin in (types.UnionType, typing.Union):
            return self._union(inner, value, path)
        if origin is typing.Literal:
            if not any(type(value) is type(known) and value == known for known in inner):
                raise unlike(path, said("one_of", known=", ".join(map(repr, inner))), value)
            return value
        return self._simple(kind, value, path)

    def _simple(self, kind: Any, value: Any, path: str) -> Any:
        if kind is Any:
            return self._anything(value, path, ANY_DEPTH)
        if kind is bytes:
            return self.read_bytes(value, path)
        if kind is Said:
            return self.read_sentence(value, path)
        if kind is float:
            return self.read_float(value, path)
        if kind is str and isinstance(value, str):
            return whole_text(value, path)
        if kind is int and type(value) is int and abs(value) < MAX_INT:
            return value
        if kind is bool and type(value) is bool:
            return value
        if kind is types.NoneType and value is None:
            return None
        raise unlike(path, said(_KINDS.get(kind, "nothing")), value)

    def _dataclass(self, kind: type, value: Any, path: str) -> Any:
        hints, optional = _fields(kind)
        if not isinstance(value, dict):
            raise unlike(path, said("an_object"), value)
        for name in value:
            if name not in hints:
                raise ExperimentError(at(path, short(name)[1:-1]), said("unknown_field"))
        for name in hints:
            if name not in value and name not in optional:
                raise ExperimentError(at(path, name), said("missing_field"))
        return kind(**{name: self.decode(hints[name], item, at(path, name)) for name, item in value.items()})

    def _tuple(self, inner: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise unlike(path, said("a_list"), value)
        if inner[-1] is Ellipsis:
            return tuple(self.decode(inner[0], item, f"{path}[{index}]") for index, item in enumerate(value))
        if len(value) != len(inner):
            raise unlike(path, said("a_list_of", count=len(inner)), value)
        kinds = zip(inner, value, strict=True)
        return tuple(self.decode(kind, item, f"{path}[{index}]") for index, (kind, item) in enumerate(kinds))

    def _mapping(self, inner: tuple[Any, ...], value: Any, path: str) -> dict[Any, Any]:
        key_kind, item_kind = inner
        if not isinstance(value, dict):
            raise unlike(path, said("an_object"), value)
        found = {}
        for key, item in value.items():
            if key_kind is int and not (key.removeprefix("-").isdecimal() and len(key) <= 19 and key.isascii()):
                raise unlike(path, said("numbers_as_names"), key)
            read = int(key) if key_kind is int else whole_text(key, path)
            found[read] = self.decode(item_kind, item, at(path, short(key)[1:-1]))
        return found

    def _union(self, inner: tuple[Any, ...], value: Any, path: str) -> Any:
        """The first kind that takes the value; a whole number stays one where whole numbers may stand."""
        if value is None and types.NoneType in inner:
            return None
        kinds = [kind for kind in inner if kind is not types.NoneType]
        if type(value) is int and int in kinds:
            kinds = [int]
        for kind in kinds[:-1]:
            try:
                return self.decode(kind, value, path)
            except ExperimentError:
                continue
        return self.decode(kinds[-1], value, path)

    def _anything(self, value: Any, path: str, depth: int) -> Any:
        if depth == 0:
            raise ExperimentError(path, said("nested_too_deeply"))
        if isinstance(value, dict):
            if self.is_float(value):
                return self.read_float(value, path)
            found = self.read_object(value)
            return {whole_text(key, path): self._anything(item, path, depth - 1) for key, item in found.items()}
        if isinstance(value, list):
            return [self._anything(item, path, depth - 1) for item in value]
        if isinstance(value, str):
            return whole_text(value, path)
        return value


@cache
def _fields(kind: type) -> tuple[dict[str, Any], frozenset[str]]:
    """The types of a dataclass' fields, and those fields that have a default."""
    hints, fields = typing.get_type_hints(kind), dataclasses.fields(kind)
    optional = frozenset(item.name for item in fields if item.default is not dataclasses.MISSING)
    return {item.name: hints[item.name] for item in fields}, optional


def whole_text(value: str, path: str) -> str:
    """The text. Raises `ExperimentError` where it holds half a character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ExperimentError(path, said("half_character")) from None
    return value


def byte_list(value: Any) -> bytes | None:
    """A list of bytes as bytes; None for anything else."""
    if isinstance(value, list) and all(type(item) is int and 0 <= item < 256 for item in value):
        return bytes(value)
    return None


def at(path: str, name: str) -> str:
    """The path of a part."""
    return f"{path}.{name}" if path else name


def unlike(path: str, wanted: Said, value: Any) -> ExperimentError:
    """What to raise where something else stands than what is wanted."""
    return ExperimentError(path, said("wanted_got", wanted=wanted, got=short(value)))


def short(value: Any) -> str:
    """What was found, in a few characters whatever its size."""
    if isinstance(value, list):
        return said("a_list")
    if isinstance(value, dict):
        return said("an_object")
    return repr(value[:60] if isinstance(value, str) else value)
