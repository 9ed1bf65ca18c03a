"""Which files of a folder are the weights, of all that may lie beside them: one file, or the parts of an index."""

import json
from pathlib import Path

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(folder: Path) -> list[Path]:
    """The files that are loaded, whether they are there or not: the parts that the index names where there is no
    whole; [] where there is neither, or an index that names none.
    """
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    try:
        parts = set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
        return sorted(folder / part for part in parts)
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return []
