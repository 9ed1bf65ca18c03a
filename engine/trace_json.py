"""A trace as JSON, out and in.

Arrays are lists, bytes are lists of integers, a number that is not finite is null and read back as −inf.
"""

import dataclasses
import types
import typing
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.trace import Bools, Event, Floats, Ints, Shape, Trace

TRACE_VERSION = 1

EVENT_TYPES: dict[str, type] = {cls.kind: cls for cls in typing.get_args(Event)}


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """The trace as plain JSON values."""
    return {
        "version": TRACE_VERSION,
        "experiment": trace.experiment.model_dump(mode="json"),
        "facts": to_json(trace.facts),
        "versions": trace.versions,
        "events": [event_to_json(event) for event in trace.events],
    }


def trace_from_json(data: dict[str, Any]) -> Trace:
    """The inverse of `trace_to_json`; a field that has a default may be missing.

    Raises ValueError on another version, KeyError or TypeError on missing parts.
    """
    if data.get("version") != TRACE_VERSION:
        raise ValueError(f"this trace has version {data.get('version')!r}; this program reads version {TRACE_VERSION}")
    return Trace(
        experiment=Experiment.model_validate(data["experiment"]),
        facts=_from_json(ModelFacts, data["facts"]),
        versions=dict(data["versions"]),
        events=tuple(event_from_json(event) for event in data["events"]),
    )


def event_to_json(event: Event) -> dict[str, Any]:
    return {"kind": event.kind, **to_json(event)}


def event_from_json(data: dict[str, Any]) -> Event:
    fields = dict(data)
    kind = fields.pop("kind")
    if kind not in EVENT_TYPES:
        raise ValueError(f"unknown event kind {kind!r}; known: {', '.join(EVENT_TYPES)}")
    event: Event = _from_json(EVENT_TYPES[kind], fields)
    return event


def to_json(value: Any) -> Any:
    """Plain JSON values of a dataclass, array or scalar."""
    if dataclasses.is_dataclass(value):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return to_json(value.tolist()) if value.dtype.kind != "f" else _floats(value)
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value


def _floats(array: npt.NDArray[Any]) -> Any:
    """float32 numbers in the fewest digits that read back to the same float32."""
    if array.ndim > 1:
        return [_floats(row) for row in array]
    return [float(str(number)) if np.isfinite(number) else None for number in array]


def _from_json(kind: Any, value: Any) -> Any:
    """Read `value` back as the annotated type `kind`."""
    origin = typing.get_origin(kind)
    if kind in (Ints, Floats, Bools):
        dtype = {Ints: np.int32, Floats: np.float32, Bools: np.bool_}[kind]
        return np.array(_null_to_minus_infinity(value) if kind == Floats else value, dtype=dtype)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        fields = dataclasses.fields(kind)
        unknown = set(value) - {item.name for item in fields}
        if unknown:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r} in a {typing.cast(type, kind).__name__}")
        given = [item.name for item in fields if item.name in value or item.default is dataclasses.MISSING]
        return typing.cast(Any, kind)(**{name: _from_json(hints[name], value[name]) for name in given})
    if kind is bytes:
        return bytes(list(value))  # of a number, bytes() would make that many zeros
    if origin is tuple:
        inner = typing.get_args(kind)[0]
        return tuple(_from_json(inner, item) for item in value)
    if origin is dict and typing.get_args(kind)[1] == Shape:
        return {key: tuple(shape) for key, shape in value.items()}
    if origin is types.UnionType:
        inner = next(item for item in typing.get_args(kind) if item is not types.NoneType)
        return None if value is None else _from_json(inner, value)
    if kind is float:
        return float("-inf") if value is None else float(value)
    return value


def _null_to_minus_infinity(value: Any) -> Any:
    if isinstance(value, list):
        return [_null_to_minus_infinity(item) for item in value]
    return -np.inf if value is None else value
