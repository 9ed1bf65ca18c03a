"""Where each message's content lies in the text that a chat template made of it.

A template is a program: it may trim contents, move them, drop parts of them. So every content is wrapped in
private-use characters that occur nowhere else, and rendered again: where the text without them is the very same text,
they show the places.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from engine.experiment import Message

_PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
_THINK_TAG = re.compile(r"</?think>")
_MAX_ROUNDS = 12

Render = Callable[[Sequence[Message]], str]
Range = tuple[int, int]


@dataclass(frozen=True)
class Found:
    """A stretch of a message's content at characters [start, end) of the rendered text."""

    message: int
    start: int
    end: int


@dataclass(frozen=True)
class Located:
    """The contents found, in the order of the text, and the messages as they were wrapped to find them."""

    found: tuple[Found, ...]
    wrapped: tuple[Message, ...]
    closers: tuple[str, ...]  # the character that ends a stretch of each message
    lost: tuple[int, ...]  # messages of which nothing can be found, though they hold something


def free_characters(texts: Sequence[str]) -> Iterator[str]:
    """Private-use characters that occur in none of the texts."""
    used = set().union(*texts)
    return (char for char in map(chr, chain(*_PRIVATE_USE)) if char not in used)


def locate(render: Render, messages: Sequence[Message], text: str) -> Located:
    """Find the contents of `messages` in `text`, which `render` made of them."""
    free = free_characters([text, *(message.content for message in messages)])
    names = list(islice(free, 2 * len(messages)))
    if len(names) < 2 * len(messages):
        return _unwrapped(messages, text)
    openers, closers = names[::2], tuple(names[1::2])
    ways = [_ways_to_wrap(message.content) for message in messages]
    for _ in range(_MAX_ROUNDS):
        wrapped = tuple(
            message.model_copy(update={"content": _wrap(message.content, way[0], opener, closer)})
            for message, way, opener, closer in zip(messages, ways, openers, closers, strict=True)
        )
        plain, found, broken = _read(render(wrapped), openers, closers)
        if plain == text and not broken:
            return _with_unwrapped(messages, Located(found, wrapped, closers, lost=()), text, ways)
        narrowed = broken or _suspects(messages, ways, found, plain, text)
        if not any(len(ways[index]) > 1 for index in narrowed):
            narrowed = set(range(len(messages)))
        for index in narrowed:
            ways[index] = ways[index][1:] or ways[index]
    return _unwrapped(messages, text)


def _ways_to_wrap(content: str) -> list[tuple[Range, ...]]:
    """What to wrap of a content: all of it, or without outer white space, or around think tags, or nothing."""
    ways: list[tuple[Range, ...]] = [((0, len(content)),), (_stripped(content, 0, len(content)),)]
    if "</think>" in content:
        tags = [tag.span() for tag in _THINK_TAG.finditer(content)]
        borders = [0, *chain(*tags), len(content)]
        inner = (_stripped(content, *pair) for pair in zip(borders[::2], borders[1::2], strict=True))
        ways.append(tuple(part for part in inner if part[0] < part[1]))
    return [*dict.fromkeys(ways), ()]


def _stripped(content: str, start: int, end: int) -> Range:
    part = content[start:end]
    lead = len(part) - len(part.lstrip())
    return start + lead, start + lead + len(part.strip())


def _wrap(content: str, ranges: tuple[Range, ...], opener: str, closer: str) -> str:
    parts: list[str] = []
    done = 0
    for start, end in ranges:
        parts += [content[done:start], opener, content[start:end], closer]
        done = end
    return "".join([*parts, content[done:]])


def _read(marked: str, openers: Sequence[str], closers: Sequence[str]) -> tuple[str, tuple[Found, ...], set[int]]:
    """The text without the wraps, the stretches between them, and the messages of which a wrap lost its partner."""
    owner = {name: index for names in (openers, closers) for index, name in enumerate(names)}
    opening = set(openers)
    plain: list[str] = []
    found: list[Found] = []
    broken: set[int] = set()
    at = 0
    opened: Found | None = None
    for part in re.split(f"([{''.join(owner)}])", marked):
        if part not in owner:
            plain.append(part)
            at += len(part)
        elif part in opening:
            if opened is not None:
                broken |= {opened.message, owner[part]}
            opened = Found(owner[part], at, at)
        else:
            if opened is None or opened.message != owner[part]:
                broken.add(owner[part])
            else:
                found.append(Found(opened.message, opened.start, at))
            opened = None
    if opened is not None:
        broken.add(opened.message)
    return "".join(plain), tuple(found), broken


def _suspects(
    messages: Sequence[Message], ways: list[list[tuple[Range, ...]]], found: Sequence[Found], plain: str, text: str
) -> set[int]:
    """Messages whose wraps may have changed the text: those with outer white space, else the one before the change."""
    spaced = {
        index
        for index, message in enumerate(messages)
        if ways[index][0] == ((0, len(message.content)),) and message.content != message.content.strip()
    }
    if spaced:
        return spaced
    change = next((at for at, (one, other) in enumerate(zip(plain, text, strict=False)) if one != other), len(plain))
    before = [item.message for item in found if item.start <= change]
    return set(before[-1:])


def _with_unwrapped(
    messages: Sequence[Message], located: Located, text: str, ways: Sequence[Sequence[tuple[Range, ...]]]
) -> Located:
    """Look up by its words what could not be wrapped: good where the words occur once outside the other contents."""
    found = list(located.found)
    lost: list[int] = []
    for index, message in enumerate(messages):
        words = message.content.strip()
        if ways[index][0] or not words:
            continue
        free = (at for at in _occurrences(text, words) if not _overlaps(found, at, at + len(words)))
        places = list(islice(free, 2))
        if len(places) == 1:
            found.append(Found(index, places[0], places[0] + len(words)))
        else:
            lost.append(index)
    found.sort(key=lambda item: item.start)
    return Located(tuple(found), located.wrapped, located.closers, tuple(lost))


def _unwrapped(messages: Sequence[Message], text: str) -> Located:
    nothing = Located(found=(), wrapped=tuple(messages), closers=("",) * len(messages), lost=())
    return _with_unwrapped(messages, nothing, text, [[()]] * len(messages))


def _occurrences(text: str, words: str) -> Iterator[int]:
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + 1)


def _overlaps(found: Sequence[Found], start: int, end: int) -> bool:
    return any(item.start < end and start < item.end for item in found)
