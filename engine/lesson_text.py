"""The texts of a lesson: paragraphs of plain text with {places} for what its claims found.

A place is a claim's name and, if wanted, a number format: `{p:.1%}`, `{bytes:,}`, `{rank}`. Nothing else of Python's
formatting is open, so a text can neither reach into a value nor ask for a line of a million blanks. `{{` and `}}`
stand for braces.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_BETWEEN_IDEOGRAPHS = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")
_PLACE = re.compile(r"([a-z][a-z0-9_]*)(?::([+,]?(?:\.\d{1,2})?[%defg]?))?")


def places(text: str) -> Iterator[str]:
    """The names in a text's places. Raises ValueError for a place that is none."""
    for match in _BRACES.finditer(text):
        if match[0] not in ("{{", "}}"):
            yield _read(match)[0]


def fill(text: str, found: Mapping[str, Any]) -> str:
    """The text with the values put in. Raises ValueError for a value that is not there or does not take the format."""

    def put(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        name, form = _read(match)
        if name not in found:
            raise ValueError(f"{{{name}}} has no value")
        value = found[name]
        try:
            return format(value, form)
        except (ValueError, TypeError):
            raise ValueError(f"{match[0]} cannot be written: {name} is {str(value)[:60]!r}") from None

    return _BRACES.sub(put, text)


def paragraphs(text: str) -> str:
    """Lines of a paragraph joined by spaces (by nothing in Chinese), paragraphs parted by one empty line."""
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip()) if block.strip())
    return _BETWEEN_IDEOGRAPHS.sub("", "\n\n".join(blocks))


def _read(match: re.Match[str]) -> tuple[str, str]:
    place = _PLACE.fullmatch(match[1]) if match[1] is not None else None
    if place is None:
        raise ValueError(
            f"{match[0]!r} is no place: {{name}} or {{name:.1%}} is wanted, and {{{{ or }}}} where a brace is meant"
        )
    return place[1], place[2] or ""
