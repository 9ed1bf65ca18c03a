"""Files of words: a title, an intro, and sections by key, with {places} for values.

    # Title
    The intro: what is seen, and one thing to try.

    ## key
    {count:,} {count:token|tokens} of {name}

A place whose format has a bar gives the word that goes with a count: the first for 1, the second for any other.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any


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
        return filled(self.sections[key], values)


class _Forms(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, other = format_spec.partition("|")
        if not bar:
            return str(super().format_field(value, format_spec))
        return one if value in (1, "1") else other


_FORMS = _Forms()


def filled(template: str, values: Mapping[str, Any]) -> str:
    """The template with its {places} filled. Values are never read as templates."""
    return _FORMS.vformat(template, (), values) if "|" in template else template.format(**values)


def parse(station: str, source: str) -> Words:
    """Read one file. Raises ValueError where the title is missing or a key appears twice."""
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
