"""Conversion between units of one kind. Factors are exact by definition; temperatures have an offset too."""

from fractions import Fraction
from typing import Any

from engine.tools.calculator import number_text
from engine.tools.tool import Setting, Tool, ToolError, schema

#: Kind → unit → how many of the kind's first unit it is.
FACTORS: dict[str, dict[str, Fraction]] = {
    "length": {
        "m": Fraction(1),
        "km": Fraction(1000),
        "cm": Fraction(1, 100),
        "mm": Fraction(1, 1000),
        "in": Fraction(254, 10_000),
        "ft": Fraction(3048, 10_000),
        "yd": Fraction(9144, 10_000),
        "mi": Fraction(1_609_344, 1000),
    },
    "mass": {
        "kg": Fraction(1),
        "g": Fraction(1, 1000),
        "lb": Fraction(45_359_237, 100_000_000),
        "oz": Fraction(45_359_237, 1_600_000_000),
    },
    "time": {"s": Fraction(1), "min": Fraction(60), "h": Fraction(3600), "day": Fraction(86_400)},
    "volume": {"l": Fraction(1), "ml": Fraction(1, 1000), "gal": Fraction(3_785_411_784, 1_000_000_000)},
}
#: Unit → factor and offset to kelvin: kelvin = factor × value + offset.
TEMPERATURES = {
    "K": (Fraction(1), Fraction(0)),
    "C": (Fraction(1), Fraction(27_315, 100)),
    "F": (Fraction(5, 9), Fraction(45_967, 180)),
}
_KINDS = {unit: kind for kind, units in FACTORS.items() for unit in units} | dict.fromkeys(TEMPERATURES, "temperature")


def convert(value: int | float, source: str, target: str) -> Fraction:
    """Raises `ToolError` where the units are of two kinds."""
    if _KINDS[source] != _KINDS[target]:
        raise ToolError(f"{source} is a unit of {_KINDS[source]}, {target} one of {_KINDS[target]}")
    given = Fraction(str(value))
    if source in TEMPERATURES:
        (factor, offset), (to_factor, to_offset) = TEMPERATURES[source], TEMPERATURES[target]
        return (given * factor + offset - to_offset) / to_factor
    factors = FACTORS[_KINDS[source]]
    return given * factors[source] / factors[target]


def _run(arguments: dict[str, Any], _: Setting) -> str:
    value, source, target = arguments["value"], arguments["from"], arguments["to"]
    return f"{number_text(value)} {source} = {number_text(float(convert(value, source, target)))} {target}"


_UNITS = {"type": "string", "enum": [*_KINDS]}

UNITS = Tool(
    name="units",
    description="Convert a value from one unit to another.",
    parameters=schema(
        {
            "value": {"type": "number", "minimum": -1e15, "maximum": 1e15},
            "from": _UNITS,
            "to": _UNITS,
        }
    ),
    run=_run,
)
