"""The words of the page: one Markdown file a station under assets/copy/<language>, read once.

`speak` says in which language `words` answers, in the context that calls it: gradio runs handlers, and each step of
a generator, in contexts of their own. So words are asked for where they are used, and never kept.

    # Title
    The intro: what is seen, and one thing to try.

    ## key
    A label or a sentence, with {places} for numbers.

The text stays plain: it reaches the page as text nodes.
"""

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Words:
    """The words of one station. Paragraphs of `intro` and of a section are parted by an empty line."""

    station: str
    title: str
    intro: str
    sections: Mapping[str, str]

    def text(self, key: str, **values: Any) -> str:
        """The section `key` with `values` put into its {places}. Raises KeyError for an unknown key or place."""
        if key not in self.sections:
            raise KeyError(f"the copy of {self.station!r} has no section {key!r}")
        return self.sections[key].format(**values)


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


def parse(station: str, source: str) -> Words:
    """Read one copy file. Raises ValueError where the title is missing or a key appears twice."""
    opening, *rest = re.split(r"^## +", source, flags=re.MULTILINE)
    title, _, intro = opening.strip().partition("\n")
    if not title.startswith("# "):
        raise ValueError(f"the copy of {station!r} does not begin with '# Title'")
    sections: dict[str, str] = {}
    for section in rest:
        key, _, body = section.partition("\n")
        if key.strip() in sections:
            raise ValueError(f"the copy of {station!r} has the section {key.strip()!r} twice")
        sections[key.strip()] = _paragraphs(body)
    return Words(station, title.removeprefix("# ").strip(), _paragraphs(intro), sections)


def _paragraphs(text: str) -> str:
    """Lines of a paragraph joined by spaces, paragraphs parted by one empty line."""
    return "\n\n".join(" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip()) if block.strip())
