"""The words of the page: one Markdown file a station under assets/copy/<language>, read once.

`speak` says in which language `words` answers, in the context that calls it: gradio runs handlers, and each step of
a generator, in contexts of their own. So words are asked for where they are used, and never kept. What such a file
looks like stands in engine/wording.py; its text stays plain: it reaches the page as text nodes.
"""

import re
from collections.abc import Iterable
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from engine.wording import Words, parse

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "copy"

#: The languages of the page as they call themselves; the first one is that of a page nobody chose one for.
LANGUAGES = {"en": "English", "zh": "中文"}
DEFAULT = "en"

_spoken = ContextVar("spoken", default=DEFAULT)

#: After these a Chinese sentence or clause goes on without a space.
_CLOSING = tuple("。！？；：，")
#: Between the items of a list.
_BETWEEN = {"en": "; ", "zh": "；"}

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


def speak(language: str) -> None:
    """From here on `words` answers in this language. Raises ValueError for one that the page does not have."""
    if language not in LANGUAGES:
        raise ValueError(f"not a language of the page: {language!r}")
    _spoken.set(language)


def spoken() -> str:
    """The language that `words` answers in."""
    return _spoken.get()


def words(station: str) -> Words:
    """The words of a station in the spoken language. Raises as `words_in` does."""
    return words_in(_spoken.get(), station)


def sentences(*parts: str | None) -> str:
    """One text of several sentences; None and empty ones are left out."""
    text = ""
    for part in filter(None, parts):
        text += part if not text or text.endswith(_CLOSING) else f" {part}"
    return text


def listed(items: Iterable[str]) -> str:
    """Items one after the other, parted as the spoken language does."""
    return _BETWEEN[_spoken.get()].join(items)


@cache
def words_in(language: str, station: str) -> Words:
    """The words of a station. Raises ValueError for a name that is no plain name, FileNotFoundError for an unknown."""
    for name in (station, language):
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a name of a station or a language: {name!r}")
    return parse(station, (FOLDER / language / f"{station}.md").read_text(encoding="utf-8"))
