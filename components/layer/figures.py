"""How the numbers of an operation are written: short, and alike in every view."""

from components.copy import words
from engine.answers.layer import LayerAt, Operation


def number_text(value: float) -> str:
    """Three digits, with a true minus: −2.41."""
    return f"{value:.3g}".replace("-", "−")


def difference_text(value: float) -> str:
    """One digit and the power of ten: 3e-7; 0 stays 0."""
    if value == 0:
        return "0"
    digit, mark, power = f"{value:.0e}".partition("e")
    return f"{digit}{mark}{int(power)}" if mark else digit


def shape_text(operation: Operation, found: LayerAt) -> str:
    """Axes with × between them. Heads that lie one behind the other, as a projection gives them, are taken apart."""
    heads = {"query": found.heads, "key": found.kv_heads, "value": found.kv_heads}.get(operation.name.split("_")[0])
    shape = operation.shape if heads is None else (heads, found.head_dim)
    return " × ".join(map(str, shape))


def formula_text(operation: Operation) -> str:
    """The formula with its numbers and the names of its weights."""
    say, values = words("layer"), operation.values
    form = operation.form
    if form in ("cosines", "sines") and values["scale"] != 1:
        form = f"{form}_scaled"
    text = say.text(f"form_{form}", **values)
    if form in ("turn_halves", "turn_neighbours") and int(values["turned"]) < int(values["head_dim"]):
        return say.text("form_turn_part", whole=text, turned=values["turned"])
    return text
