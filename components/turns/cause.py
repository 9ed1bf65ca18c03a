"""Where a new context stops matching the cache, and the likely cause, worked out from the two turns' spans."""

import re
from dataclasses import dataclass
from typing import Literal

from engine.trace import Rendered, Trace
from engine.truncated import Truncated

Place = Literal["system", "history", "generation_prompt", "answer"]
Cause = Literal[
    "policy",  # a context policy left messages out
    "clock",  # a time or a date
    "system",  # the system prompt is another
    "thinking",  # the template leaves thoughts out of former answers
    "generation_prompt",  # the answer was opened otherwise than answers in the history are
    "stop_string",  # the text ends before the stop string, the cache holds its tokens
    "mark",  # the answer held a control mark, its text does not
    "bytes",  # the answer held bytes that are no text
    "retokenised",  # the same text in other tokens
    "spacing",  # the same text but for white space
    "rewritten",  # the template wrote another text
]

#: Tokens shown before the place where two contexts part, and from it on.
BEFORE, AFTER = 6, 6

_CLOCK = re.compile(r"\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2} [A-Z][a-z]{2,8},? \d{4}")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Difference:
    """The first pair of ids that differs, with the text around it."""

    turn: int
    position: int
    cached_id: int
    new_id: int
    shared: bytes  # just before it
    old: bytes  # from it on, in the cache
    new: bytes  # from it on, in the new context
    place: Place  # where it lies in the turn before
    cause: Cause


@dataclass(frozen=True, eq=False)
class _Sides:
    """Both contexts from the place on where they part, as tokens' bytes."""

    before: Rendered
    position: int  # in the context of the turn before
    shared: list[bytes]
    old: list[bytes]
    new: list[bytes]


def select(trace: Trace, turn: int) -> Difference | None:
    """Where the turn's context parts from the cache of the turn before; None where it does not."""
    rendered, before = trace.rendered(turn), trace.rendered(turn - 1)
    if rendered is None or before is None or rendered.parted is None:
        return None
    place = rendered.parted.position
    steps = trace.steps(turn - 1)
    ids = [*before.token_ids.tolist(), *(step.token_id for step in steps)]
    held = [*before.token_bytes, *(step.token_bytes for step in steps)]
    gone = _gone(ids, [*rendered.token_ids[:place].tolist(), rendered.parted.cached_id])
    # The newest token was chosen and never fed, so it is not in the cache.
    cached = held[gone : len(ids) - (1 if steps else 0)]
    sides = _Sides(before, gone + place, cached[:place], cached[place:], list(rendered.token_bytes[place:]))
    where = _place(before, gone + place)
    return Difference(
        turn=turn,
        position=place,
        cached_id=rendered.parted.cached_id,
        new_id=rendered.parted.new_id,
        shared=b"".join(sides.shared[-BEFORE:]),
        old=b"".join(sides.old[:AFTER]),
        new=b"".join(sides.new[:AFTER]),
        place=where,
        cause=_cause(trace, turn, rendered, sides, where),
    )


def _gone(ids: list[int], shared: list[int]) -> int:
    """Positions of the turn before that had left at its front, in a window that slid: where `shared` begins."""
    starts = (start for start in range(len(ids)) if ids[start : start + len(shared)] == shared)
    return next(starts, 0)


def _place(before: Rendered, position: int) -> Place:
    if position >= len(before.token_ids):
        return "answer"
    index = int(before.span_index[position])
    if index >= 0 and before.spans[index].role == "system":
        return "system"
    if index >= 0 and before.spans[index].message is None and before.spans[index].role == "assistant":
        return "generation_prompt"
    return "history"


def _cause(trace: Trace, turn: int, rendered: Rendered, sides: _Sides, place: Place) -> Cause:
    if any(True for _ in trace.of(Truncated, turn)):
        return "policy"
    if place != "answer" and _is_clock(sides):
        return "clock"
    if place == "system":
        return "system"
    old = b"".join(sides.old)
    if b"<think" in old and old.count(b"<think") > b"".join(sides.new).count(b"<think"):
        return "thinking"
    if place == "generation_prompt":
        return "generation_prompt"
    return _of_answer(trace, turn, rendered, sides) if place == "answer" else "rewritten"


def _is_clock(sides: _Sides) -> bool:
    """True where both sides read the same but for digits, and those are of a time or a date."""
    reach = 10
    before = b"".join(sides.shared[-reach:])
    old, new = (_text(before + b"".join(side[:reach]))[:80] for side in (sides.old, sides.new))
    spots = [{match.start() for match in _CLOCK.finditer(text)} for text in (old, new)]
    head = len(_text(before))
    near = {spot for spot in spots[0] & spots[1] if spot <= head + 2 and spot >= head - 20}
    length = head + 4
    return bool(near) and _DIGIT.sub("0", old[:length]) == _DIGIT.sub("0", new[:length])


def _of_answer(trace: Trace, turn: int, rendered: Rendered, sides: _Sides) -> Cause:
    """Why an answer that was fed token by token reads otherwise as a message."""
    steps = trace.steps(turn - 1)[sides.position - len(sides.before.token_ids) :]
    stopped = trace.stopped(turn - 1)
    own = b"".join(step.token_bytes for step in steps if not step.special)
    rest = _rest_of_message(rendered, len(sides.shared))
    if steps and steps[0].special:
        return "mark"
    if stopped and stopped.reason == "stop_string" and len(rest) < len(own) and own.startswith(rest):
        return "stop_string"
    if own == rest:
        return "retokenised"
    if "�" in _text(own):
        return "bytes"
    if own.split() == rest.split():
        return "spacing"
    return "rewritten"


def _rest_of_message(rendered: Rendered, position: int) -> bytes:
    """The content from `position` on; b"" where scaffold stands there."""
    index = rendered.span_index[position]
    if index < 0 or rendered.spans[index].kind != "content":
        return b""
    return b"".join(
        data
        for data, span in zip(rendered.token_bytes[position:], rendered.span_index[position:].tolist(), strict=True)
        if span == index
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
