"""A second language whose texts are the English ones in marks, to see which words of the page are not its own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from components import copy
from components.copy import FOLDER, speak, words_in
from engine.wording import parse

OTHER = "zh"
INNERMOST = re.compile(r"⟦[^⟦⟧]*⟧")


@pytest.fixture(autouse=True)
def apart() -> Iterator[None]:
    """A test that speaks another language leaves the next one its own."""
    yield
    speak(copy.DEFAULT)


@contextmanager
def marked(folder: Path) -> Iterator[None]:
    """While it lasts, the second language says what the first says, in marks."""
    (folder / "en").symlink_to(FOLDER / "en")
    (folder / OTHER).mkdir()
    for path in {path.name: path for language in (OTHER, "en") for path in (FOLDER / language).glob("*.md")}.values():
        (folder / OTHER / path.name).write_text(_in_marks(path.stem, path.read_text("utf-8")), "utf-8")
    before, copy.FOLDER = copy.FOLDER, folder
    words_in.cache_clear()
    try:
        yield
    finally:
        copy.FOLDER = before
        words_in.cache_clear()
        speak(copy.DEFAULT)


def _in_marks(station: str, source: str) -> str:
    read = parse(station, source)
    sections = [f"## {key}\n{_each(text)}" for key, text in read.sections.items()]
    return "\n\n".join([f"# ⟦{read.title}⟧\n{_each(read.intro)}", *sections])


def _each(text: str) -> str:
    return "\n\n".join(f"⟦{paragraph}⟧" for paragraph in text.split("\n\n") if paragraph)


def texts(value: Any) -> Iterator[str]:
    """All strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


def english() -> set[str]:
    """Of each English text of two words or more its longest stretch without a place for a value."""
    files = [words_in("en", path.stem) for path in (FOLDER / "en").glob("*.md")]
    said = [text for file in files for text in (file.title, file.intro, *file.sections.values())]
    stretches = (max(re.split(r"\{[^}]*\}|\n", text), key=len).strip() for text in said)
    return {stretch for stretch in stretches if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", stretch)}


def unmarked(text: str) -> str:
    """What is left of a text without what is marked; marked texts may hold others as values."""
    while (rest := INNERMOST.sub("", text)) != text:
        text = rest
    return text
