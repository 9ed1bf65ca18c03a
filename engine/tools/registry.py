"""The tools there are, by name."""

from collections.abc import Sequence

from engine.tools.calculator import CALCULATOR
from engine.tools.clock import CLOCK
from engine.tools.elements import ELEMENTS
from engine.tools.tool import Tool
from engine.tools.units import UNITS

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (CALCULATOR, CLOCK, UNITS, ELEMENTS)}


def tools_named(names: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of these names, each once, in the given order."""
    return tuple(TOOLS[name] for name in dict.fromkeys(names))
