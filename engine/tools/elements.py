"""A lookup in a small table that is shipped with the program: the first 36 chemical elements."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

from engine.tools.tool import Setting, Tool, ToolError, schema

FILE = Path(__file__).resolve().parents[2] / "assets" / "tables" / "elements.csv"


@cache
def table() -> dict[str, dict[str, str]]:
    """The rows by lower-case name and by lower-case symbol."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row[key].lower(): row for row in rows for key in ("name", "symbol")}


def _run(arguments: dict[str, Any], _: Setting) -> str:
    asked = arguments["element"]
    row = table().get(asked.strip().lower())
    if row is None:
        raise ToolError(f"no element {asked!r} in the table; it holds the first 36, by English name or symbol")
    return f"{row['name']} ({row['symbol']}): atomic number {row['number']}, atomic weight {row['weight']}"


ELEMENTS = Tool(
    name="elements",
    description="Look up a chemical element: its symbol, atomic number and atomic weight.",
    parameters=schema(
        {"element": {"type": "string", "description": "English name or symbol", "minLength": 1, "maxLength": 40}}
    ),
    run=_run,
)
