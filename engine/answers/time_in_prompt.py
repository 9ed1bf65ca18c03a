"""What the place of the time in a system prompt does to reuse."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TimeCase:
    """Two contexts that differ in the time alone: `common` of the first one's `positions` can be reused."""

    place: Literal["first", "last"]
    positions: int
    common: int
    shared: bytes  # the text just before they part
    old: bytes  # the first differing token of each
    new: bytes


@dataclass(frozen=True)
class TimeInPrompt:
    """The same system prompt with the time put first, and put last."""

    system: str
    cases: tuple[TimeCase, ...]
