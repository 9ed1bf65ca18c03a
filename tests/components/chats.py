"""Chats of two turns made by hand from tokens given as texts, compared as the engine compares them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.trace import Parted, Prefilled, Rendered, Span, Stopped, Trace
from tests.components.handmade import make_experiment, make_facts, make_step

#: (role, message, kind, tokens as text)
Part = tuple[str, int | None, str, Sequence[str]]
S, U, A = "system", "user", "assistant"
OPEN, CLOSE = "<|im_start|>", "<|im_end|>"


def context(parts: Sequence[Part], *, turn: int = 0, **fields: Any) -> Rendered:
    """A context of tokens given as texts; each text has one id, the same everywhere."""
    text, spans, tokens, index = "", [], [], []
    for number, (role, message, kind, pieces) in enumerate(parts):
        piece = "".join(pieces)
        spans.append(Span(len(text), len(text) + len(piece), role, message, kind))  # type: ignore[arg-type]
        text += piece
        tokens += pieces
        index += [number] * len(pieces)
    return Rendered(
        turn=turn,
        text=text,
        spans=tuple(spans),
        token_ids=np.array([token_id(token) for token in tokens], np.int32),
        span_index=np.array(index, np.int32),
        pieces=tuple(tokens),
        token_bytes=tuple(token.encode() for token in tokens),
        special=np.array([token.startswith("<|") for token in tokens]),
        marks_in_content=0,
        reused=0,
        parted=None,
        **fields,
    )


_IDS: dict[str, int] = {}


def token_id(text: str) -> int:
    return _IDS.setdefault(text, len(_IDS) + 100)


def chat(
    first: Sequence[Part],
    answer: Sequence[str],
    second: Sequence[Part],
    *,
    reason: str = "eos",
    text: str | None = None,
    forced_end: bool = False,
) -> Trace:
    """Two turns; the second is compared with what the first left, as the engine compares."""
    facts = make_facts()
    before = context(first)
    count = len(before.token_ids)
    events: list[Any] = [before, Prefilled(0, 0, count - 1, {}, count, 0, 0.1)]
    shown = text if text is not None else "".join(token for token in answer if not token.startswith("<|"))
    for step, token in enumerate(answer):
        base = make_step(step, count, 15, facts, text=shown if step == 0 else "")
        events.append(
            dataclasses.replace(
                base, token_id=token_id(token), token_bytes=token.encode(), special=token.startswith("<|"),
                forced=forced_end and step == len(answer) - 1,
            )
        )  # fmt: skip
    events.append(Stopped(0, reason, {}, ""))  # type: ignore[arg-type]
    held = [*before.token_ids.tolist(), *(token_id(token) for token in answer[:-1])]
    after = context(second, turn=1)
    ids = after.token_ids.tolist()
    common = next(
        (p for p, pair in enumerate(zip(held, ids, strict=False)) if pair[0] != pair[1]), min(len(held), len(ids))
    )
    parted = Parted(common, held[common], ids[common]) if common < min(len(held), len(ids)) else None
    after = dataclasses.replace(after, reused=common, cached=len(held), parted=parted)
    events += [after, Prefilled(1, common, len(ids) - 1, {}, len(ids), 0, 0.1)]
    return Trace(make_experiment(follow_ups=["more"]), facts, {}, tuple(events))


def asked(*content: str, message: int = 0) -> list[Part]:
    return [
        (U, message, "scaffold", (OPEN, "user\n")),
        (U, message, "content", content),
        (U, message, "scaffold", (CLOSE, "\n")),
    ]


def answered(*content: str) -> list[Part]:
    return [(A, 1, "scaffold", (OPEN, "assistant\n")), (A, 1, "content", content), (A, 1, "scaffold", (CLOSE, "\n"))]


def system(*content: str) -> list[Part]:
    return [
        (S, None, "scaffold", (OPEN, "system\n")),
        (S, None, "content", content),
        (S, None, "scaffold", (CLOSE, "\n")),
    ]


GO: list[Part] = [(A, None, "scaffold", (OPEN, "assistant\n"))]
MORE = asked("more", message=2)
FIRST = [*asked("Hi"), *GO]


def second(*content: str) -> list[Part]:
    return [*asked("Hi"), *answered(*content), *MORE, *GO]


def grown() -> Trace:
    return chat(FIRST, ("Hello", "!", CLOSE), second("Hello", "!"))
