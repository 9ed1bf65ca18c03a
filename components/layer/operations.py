"""The table of operations, and the first numbers of the one that is chosen."""

from typing import Any

from components.copy import words
from components.layer.figures import difference_text, formula_text, number_text, shape_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.layer import LayerAt, Operation


def chosen(found: LayerAt, name: str) -> int:
    """The place of the operation of that name; the first where this model has none of it."""
    names = [operation.name for operation in found.operations]
    return names.index(name) if name in names else 0


def operations_value(found: LayerAt, name: str) -> dict[str, Any]:
    """One operation a row, in the order in which the layer computes."""
    say = words("layer")
    columns = [
        Column(say.text("col_stage")),
        Column(say.text("col_operation")),
        Column(say.text("col_formula")),
        Column(say.text("col_shape"), align="right"),
        Column(say.text("col_difference"), align="right", help=say.text("help_difference")),
        Column(say.text("col_norm"), align="right", help=say.text("help_norm")),
        Column(say.text("col_range"), align="right", help=say.text("help_range")),
    ]
    rows, stage = [], ""
    for operation in found.operations:
        opening = operation.stage != stage
        stage = operation.stage
        rows.append(_row(operation, found, opening=opening))
    return table.value(
        columns,
        rows,
        selected=chosen(found, name),
        caption=say.text("operations_said", layer=found.layer, position=found.position),
        key=[{"operation": operation.name} for operation in found.operations],
    )


def _row(operation: Operation, found: LayerAt, *, opening: bool) -> list[Cell | str]:
    say = words("layer")
    return [
        Cell(say.text(f"stage_{operation.stage}"), tone="dim") if opening else "",
        say.text(f"op_{operation.name}"),
        Cell(formula_text(operation), tone="dim"),
        shape_text(operation, found),
        _difference(operation, found),
        number_text(operation.norm),
        f"{number_text(operation.low)} … {number_text(operation.high)}",
    ]


def _difference(operation: Operation, found: LayerAt) -> Cell:
    if operation.difference is None:
        return Cell("–", tone="dim", title=words("layer").text("kept"))
    held = operation.difference <= found.expected
    return Cell(difference_text(operation.difference), tone="" if held else "warn")


def first_value(found: LayerAt, name: str) -> dict[str, Any]:
    """The first numbers of the chosen operation, ours above the model's."""
    say = words("layer")
    operation = found.operations[chosen(found, name)]
    columns = [Column(say.text("col_number"))]
    columns += [Column(str(index), align="right") for index in range(len(operation.ours))]
    rows: list[list[Cell | str]] = [[say.text("col_hand"), *(_exact(value) for value in operation.ours)]]
    if operation.model is None:
        rows.append([say.text("col_model"), *(Cell("–", tone="dim") for _ in operation.ours)])
    else:
        rows.append([say.text("col_model"), *(_exact(value) for value in operation.model)])
    heads = len(operation.shape) > 1
    count = 1
    for axis in operation.shape:
        count *= axis
    caption = say.text(
        "first_said_heads" if heads else "first_said",
        operation=say.text(f"op_{operation.name}"),
        last=len(operation.ours) - 1,
        count=f"{count:,}",
    )
    return table.value(columns, rows, caption=caption)


def _exact(value: float) -> str:
    """Five digits."""
    return f"{value:.5g}".replace("-", "−")
