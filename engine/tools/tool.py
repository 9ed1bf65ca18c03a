"""What a tool is: a name, words for the model, a JSON schema of its arguments, and a function that runs here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class ToolError(ValueError):
    """A tool cannot do what it was asked; the message goes back to the model."""


@dataclass(frozen=True)
class Setting:
    """What a tool may know of the experiment, so that the same experiment gives the same result."""

    clock: str  # ISO 8601 with its offset


@dataclass(frozen=True)
class Tool:
    """`run` gets arguments that the schema has accepted and gives one line of text. Raises `ToolError`."""

    name: str
    description: str
    parameters: dict[str, Any]  # a JSON schema of an object
    run: Callable[[dict[str, Any], Setting], str]

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as chat templates take it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def schema(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The schema of an object with exactly these properties, all of them required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
