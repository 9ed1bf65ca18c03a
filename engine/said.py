"""A sentence for a person that knows what it was made of, so that it can be said again: in another language, or later.

What the engine refuses it says in English, to the command line and the endpoint; the sentences stand in
assets/copy/en/refusals.md. The page says the same in its own language, by the key and the values, and a record keeps
these two.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from engine.wording import filled, parse

FILE = Path(__file__).resolve().parent.parent / "assets" / "copy" / "en" / "refusals.md"


class Said(str):
    """The English sentence. A value is a number, true or false, a text, or `Said` itself."""

    key: str
    values: Mapping[str, Any]


#: What stands where a reason is kept: it may be one that this program has no words for.
Sentence = Said | str


@cache
def english() -> Mapping[str, str]:
    """The sentences with their {places}, by key."""
    return parse(FILE.stem, FILE.read_text(encoding="utf-8")).sections


def said(key: str, /, **values: Any) -> Said:
    """The sentence of that key. Raises KeyError where there is none, or where a value is missing."""
    plain = {name: _plain(value) for name, value in values.items()}
    sentence = Said(filled(english()[key], plain))
    sentence.key, sentence.values = key, plain
    return sentence


def said_again(key: str, values: Mapping[str, Any], text: str) -> Sentence:
    """A sentence that was kept, in the words of today; the `text` that was kept with it where they do not fit."""
    try:
        return said(key, **values)
    except (LookupError, ValueError, TypeError):
        return text


def _plain(value: Any) -> Any:
    """A value that a file can hold."""
    if isinstance(value, bool | int | float | str):
        return value
    number = getattr(value, "item", None)  # of numpy
    return number() if callable(number) else str(value)
