r"""Texts in one field, one a line: stop strings and banned words, written into the form and read out of it.

A person types \n for a line break and \t for a tab. Other characters that end a line somewhere are written by their
code (\u000d), since nobody types that by chance, as \right or \frac are typed. A backslash stands for itself, and is
doubled only where it would begin one of these: \\n is a backslash and an n.
"""

import re
from collections.abc import Sequence

_CODES = {f"u{ord(char):04x}": char for char in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
_CHARS = {"n": "\n", "t": "\t", **_CODES}
_NAMES = {char: name for name, char in _CHARS.items()}

_NAME = "|".join(_CHARS)
_TYPED = re.compile(rf"(\\+)({_NAME})")
_PLAIN = re.compile(rf"(\\*)([{''.join(_NAMES)}])|(\\+)({_NAME})")


def entries_of(text: str | None) -> list[str]:
    """The texts of a field; empty lines are none."""
    return [_TYPED.sub(_read, line) for line in (text or "").replace("\r\n", "\n").split("\n") if line]


def text_of(entries: Sequence[str]) -> str:
    """What the field shows: the inverse of `entries_of`, and no browser changes it."""
    return "\n".join(_PLAIN.sub(_written, entry) for entry in entries)


def _read(found: re.Match[str]) -> str:
    pairs, alone = divmod(len(found[1]), 2)
    return "\\" * pairs + (_CHARS[found[2]] if alone else found[2])


def _written(found: re.Match[str]) -> str:
    slashes, char, before_name, name = found.groups()
    if char:
        return "\\" * (2 * len(slashes) + 1) + _NAMES[char]
    return "\\" * (2 * len(before_name)) + str(name)
