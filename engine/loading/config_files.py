"""The small files beside a model's weights, which anybody may have written: read with a limit, never trusted."""

import json
import re
from pathlib import Path
from typing import Any

from engine.catalog import ModelError

MAX_CONFIG_BYTES = 10_000_000


def read_json(path: Path, title: str) -> dict[str, Any]:
    """A JSON object of a file. Raises `ModelError`."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(MAX_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{title} cannot be added: {path.name} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise ModelError(f"{title} cannot be added: {path.name} holds no object")
    return data


def takes_tools(folder: Path) -> bool:
    """True where the chat template of a folder speaks of tools."""
    for name in ("chat_template.jinja", "chat_template.json", "tokenizer_config.json"):
        path = folder / name
        if path.is_file() and path.stat().st_size < MAX_CONFIG_BYTES:
            text = path.read_text(encoding="utf-8", errors="replace")
            # Only the template itself: other fields of a config may have the word in them.
            template = text if name.endswith(".jinja") else _template(text)
            if template:
                return re.search(r"\btools\b", template) is not None
    return False


def _template(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    found = data.get("chat_template") if isinstance(data, dict) else None
    return found if isinstance(found, str) else json.dumps(found) if found else ""
