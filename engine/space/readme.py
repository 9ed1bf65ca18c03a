"""The front matter of the README, which is what the Hub reads of a Space: made from the Spacefile, never by hand."""

from pathlib import Path
from typing import Any

import yaml

from engine.catalog import Catalog
from engine.space.spacefile import ROOT, SpaceError, Spacefile, preloads

README = ROOT / "README.md"
MARK = "---\n"


def front_matter(space: Spacefile, catalog: Catalog) -> str:
    """The block between two lines of dashes, these included."""
    data: dict[str, Any] = {
        key: getattr(space, key)
        for key in (
            "title", "emoji", "colorFrom", "colorTo", "sdk", "sdk_version", "python_version", "app_file",
            "short_description", "license",
        )
    }  # fmt: skip
    data["suggested_hardware"] = space.hardware
    lists = {
        "tags": list(space.tags),
        "models": list(space.models),
        "preload_from_hub": preloads(space, catalog),
    }
    data |= {key: values for key, values in lists.items() if values}
    return MARK + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000) + MARK


def split(text: str) -> tuple[str, str]:
    """The front matter of a document, "" for none, and the rest. Raises `SpaceError` where it does not end."""
    if not text.startswith(MARK):
        return "", text
    inside, mark, rest = text.removeprefix(MARK).partition("\n" + MARK)
    if not mark:
        raise SpaceError("the README's front matter does not end: a line of three dashes is wanted")
    return MARK + inside + mark, rest


def written(text: str, space: Spacefile, catalog: Catalog) -> str:
    """The document with the front matter of the Spacefile in the place of its own."""
    return f"{front_matter(space, catalog)}\n{split(text)[1].lstrip()}"


def write(space: Spacefile, catalog: Catalog, path: Path = README) -> bool:
    """Bring the README up to date; False where it was."""
    old = path.read_text(encoding="utf-8")
    new = written(old, space, catalog)
    if new != old:
        path.write_text(new, encoding="utf-8")
    return new != old
