"""The memory a model needs in each kind of numbers, against what is there."""

from typing import TYPE_CHECKING, Any

from components.copy import words
from components.units import bytes_text
from components.widgets import table
from components.widgets.table import Cell, Column

if TYPE_CHECKING:
    from engine.answers.memory import Memory


def memory_value(memory: "Memory") -> dict[str, Any]:
    """A line for each kind of numbers; what is there counts without this model."""
    say = words("model")
    columns = [
        Column(say.text("col_numbers"), mono=True),
        Column(say.text("col_weights"), align="right"),
        Column(say.text("col_needed"), align="right"),
        Column(say.text("col_here")),
    ]
    widest = max(need.needed for need in memory.needs)
    rows: list[list[Cell | str]] = []
    for need in memory.needs:
        fits = need.needed <= memory.free
        here = say.text("fits" if fits else "fits_not")
        if need.kind == memory.kind:
            here = say.text("loaded_so", size=bytes_text(memory.loaded))
        elif need.kind == "4bit" and not memory.device.startswith("cuda"):
            here, fits = say.text("fits_cuda"), False
        rows.append(
            [
                need.kind,
                bytes_text(need.weights),
                Cell(bytes_text(need.needed), bar=need.needed / widest),
                Cell(here, tone="ok" if fits else "dim"),
            ]
        )
    return table.value(
        columns, rows, caption=say.text("memory_said", free=bytes_text(memory.free), where=memory.device)
    )
