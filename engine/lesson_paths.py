"""Where a claim looks: a path of plain words into a JSON value. Nothing in it is ever run.

- `turns.0.steps.5.token_id`: fields by name, items of a list by number (-1 is the last)
- `steps[step=5].token_bytes.text`: the first item whose field has that value
- `ranks[each 0]`: that item, or field, of each item of a list
- `ranks[each 0][=1]`: the place of the first item that equals a value
- `token_ids.count`: of a list `count`, `sum`, `mean`, `min`, `max`, `where_min`, `where_max`
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

_STEP = re.compile(r"(\w+|-\d+)|\[each (\w+|-\d+)\]|\[(\w*)=([^\[\]]*)\]")

_OF_LISTS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count": len,
    "sum": math.fsum,
    "mean": lambda items: math.fsum(items) / len(items),
    "min": min,
    "max": max,
    "where_min": lambda items: items.index(min(items)),
    "where_max": lambda items: items.index(max(items)),
}

#: Names that are told where one is not there.
TOLD = 12


class PathError(ValueError):
    """A path leads nowhere; the message says what there is instead."""


def look(value: Any, path: str) -> Any:
    """What stands at `path`. Raises `PathError`."""
    for name, each, field, wanted in _steps(path):
        if each:
            value = [_at(item, each) for item in _list(value, f"[each {each}]")]
        elif name:
            value = _at(value, name)
        elif field:
            value = _where(_list(value, f"[{field}={wanted}]"), field, wanted)
        else:
            value = _place(_list(value, f"[={wanted}]"), wanted)
    return value


def check(path: str) -> None:
    """Raise `PathError` for what cannot be read as a path."""
    _steps(path)


def _steps(path: str) -> list[tuple[str, str, str, str]]:
    steps: list[tuple[str, str, str, str]] = []
    at = 0
    while at < len(path):
        at += steps != [] and path[at] == "."
        match = _STEP.match(path, at)
        if match is None:
            raise PathError(f"{path!r} cannot be read from {path[at : at + 20]!r} on")
        steps.append((match[1] or "", match[2] or "", match[3] or "", match[4] or ""))
        at = match.end()
    return steps


def _at(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        if name not in value:
            raise PathError(f"there is no {name!r}; there is: {_told(value)}")
        return value[name]
    if not isinstance(value, list):
        raise PathError(f"{name!r} is asked of {str(value)[:40]!r}, which has no parts")
    if name in _OF_LISTS:
        try:
            return _OF_LISTS[name](value)
        except (TypeError, ValueError):
            raise PathError(f"{name!r} wants a list of numbers, with at least one") from None
    try:
        return value[int(name)]
    except ValueError:
        raise PathError(f"{name!r} is asked of a list; a number is wanted, or: {_told(_OF_LISTS)}") from None
    except IndexError:
        raise PathError(f"there is no item {name} in a list of {len(value)}") from None


def _list(value: Any, step: str) -> list[Any]:
    if not isinstance(value, list):
        raise PathError(f"{step} is asked of what is no list")
    return value


def _where(items: list[Any], field: str, wanted: str) -> Any:
    for item in items:
        if isinstance(item, dict) and field in item and _same(item[field], wanted):
            return item
    raise PathError(f"no item of the {len(items)} has {field}={wanted}")


def _place(items: list[Any], wanted: str) -> int:
    for index, item in enumerate(items):
        if _same(item, wanted):
            return index
    raise PathError(f"none of the {len(items)} items is {wanted}")


def _same(value: Any, wanted: str) -> bool:
    """A written value beside one of JSON; the bytes of a token are told by their text."""
    if isinstance(value, dict):
        value = value.get("text")
    if value is None or isinstance(value, bool):
        return wanted == {None: "null", True: "true", False: "false"}[value]
    return isinstance(value, str | int | float) and str(value) == wanted


def _told(names: Any) -> str:
    names = list(names)
    return ", ".join(map(str, names[:TOLD])) + (", …" if len(names) > TOLD else "")
