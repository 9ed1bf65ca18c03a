"""The grammar that forces one valid call of one of the tools."""

import json
from collections.abc import Sequence
from typing import Any

from engine.experiment import Grammar
from engine.tools.calls import CLOSE, OPEN
from engine.tools.tool import Tool

#: JSON as models are taught to write it, so that everything but names and values is the same text each time.
_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def call_grammar(tools: Sequence[Tool], *, mark_tokens: bool) -> Grammar:
    """Mark, one JSON object that fits the schema of one tool, mark. `mark_tokens`: both marks are tokens."""
    opening = f'{OPEN} "\\n"' if mark_tokens else f'"{OPEN}\\n"'
    closing = f'"\\n" {CLOSE}' if mark_tokens else f'"\\n{CLOSE}"'
    names = [f"call_{index}" for index in range(len(tools))]
    rules = [f"{name}: %json {json.dumps(_schema(tool))}" for name, tool in zip(names, tools, strict=True)]
    start = f"start: {opening} call {closing}"
    return Grammar(kind="lark", source="\n".join([start, f"call: {' | '.join(names)}", *rules]))


def _schema(tool: Tool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
        "x-guidance": _SPACING,
    }
