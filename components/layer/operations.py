"""The table of operations, and the first numbers of the one that is chosen."""

from math import prod
from typing import Any

from components.copy import sentences, words
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
        caption=sentences(say.text("operations_said", layer=found.layer, position=found.position), _told(found)),
        key=[{"operation": operation.name} for operation in found.operations],
    )


def _told(found: LayerAt) -> str:
    """That the angles are of another position than the place in the turn: what the model was told in its window."""
    told = next((one.values["position"] for one in found.operations if one.name == "cosines"), found.position)
    return "" if told == found.position else words("layer").text("told", told=told)


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
    """The first numbers of the chosen operation, of its first head where there are heads; ours above the model's."""
    say = words("layer")
    operation = found.operations[chosen(found, name)]
    ours = operation.ours[: operation.shape[-1]]
    columns = [Column(say.text("col_number"))]
    columns += [Column(str(index), align="right") for index in range(len(ours))]
    rows: list[list[Cell | str]] = [[say.text("col_hand"), *(_exact(value) for value in ours)]]
    if operation.model is None:
        rows.append([say.text("col_model"), *(Cell("–", tone="dim") for _ in ours)])
    else:
        rows.append([say.text("col_model"), *(_exact(value) for value in operation.model[: len(ours)])])
    heads = len(operation.shape) > 1
    if len(ours) == 1:
        key = "first_said_one_heads" if heads else "first_said_one"
    else:
        key = "first_said_heads" if heads else "first_said"
    caption = say.text(
        key,
        operation=say.text(f"op_{operation.name}"),
        last=len(ours) - 1,
        count=f"{prod(operation.shape):,}",
    )
    return table.value(columns, rows, caption=caption)


def _exact(value: float) -> str:
    """Five digits."""
    return f"{value:.5g}".replace("-", "−")
