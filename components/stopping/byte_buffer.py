"""The byte buffer of an answer: what each token adds, what is held back after it and why, where a stop string lies."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine.trace import Stepped


@dataclass(frozen=True)
class Held:
    """What is held back after a step: its bytes, whether they end in half a character, which stops they may become.

    `left_out` is true of a special token that is no text.
    """

    data: bytes
    half_character: bool
    may_become: tuple[str, ...]
    left_out: bool = False


@dataclass(frozen=True)
class Location:
    """Where a stop string lies in the answer: the steps whose tokens hold its first and its last byte."""

    first_step: int
    last_step: int


def held_after(steps: Sequence[Stepped], stop_strings: Sequence[str]) -> list[Held]:
    """For each step what is held back after it."""
    data = b""
    found = []
    for step in steps:
        data += _text_bytes(step, stop_strings)
        tail = data[len(data) - step.held_bytes :]
        text, used = codecs.utf_8_decode(tail, "replace", False)
        may_become = tuple(stop for stop in stop_strings if text and stop.startswith(text))
        found.append(Held(tail, used < len(tail), may_become, _left_out(step, stop_strings)))
    return found


def completed(steps: Sequence[Stepped], stop_strings: Sequence[str]) -> str:
    """The stop string that the last token completes: the first to be complete, of two that end together the longer."""
    pieces = [_text_bytes(step, stop_strings) for step in steps]
    starts = {stop: _start(pieces, stop) for stop in stop_strings if stop}
    found = [stop for stop, start in starts.items() if start >= 0]
    return min(found or starts, key=lambda stop: (starts[stop] + len(stop.encode()), -len(stop.encode())))


def locate(steps: Sequence[Stepped], string: str) -> Location | None:
    """The tokens in which a stop string that ended the turn begins and ends; None where it is not in the answer."""
    pieces, needle = [_text_bytes(step, (string,)) for step in steps], string.encode()
    ends, start = list(accumulate(map(len, pieces))), _start(pieces, string)
    if start < 0:
        return None
    first = next(i for i, end in enumerate(ends) if end > start)
    last = next(i for i, end in enumerate(ends) if end >= start + len(needle))
    return Location(steps[first].step, steps[last].step)


def _left_out(step: Stepped, stop_strings: Sequence[str]) -> bool:
    """True for a special token that adds no text: one that stands in no stop string."""
    return step.special and not any(step.token_bytes in stop.encode() for stop in stop_strings)


def _text_bytes(step: Stepped, stop_strings: Sequence[str]) -> bytes:
    return b"" if _left_out(step, stop_strings) else step.token_bytes


def _start(pieces: Sequence[bytes], string: str) -> int:
    """The first byte of a string that ends in the last piece, as the text stops there; -1 where none does."""
    whole, needle = b"".join(pieces), string.encode()
    return whole.find(needle, max(0, len(whole) - len(pieces[-1] if pieces else b"") - len(needle) + 1))


def first_visible(steps: Sequence[Stepped]) -> Stepped | None:
    """The step that put the first visible character on the page; white space is not seen."""
    return next((step for step in steps if step.text.strip()), None)


def running(pieces: Sequence[bytes]) -> list[str]:
    r"""For each piece the whole characters that it completes; bytes that never become one appear as "\xf0"."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return [decoder.decode(piece, final=i == len(pieces) - 1) for i, piece in enumerate(pieces)]
