"""Three classic faults of hand-written loops: what to expect of each, and what it did in this run."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, get_args

from components.copy import words
from components.units import seconds_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.experiment import Mistake
from engine.trace import Stepped

MISTAKES: tuple[Mistake, ...] = get_args(Mistake)
FEW = 3  # steps averaged at either end of a run


def mistakes_value(
    active: Mistake | None, step: Stepped | None, steps: Sequence[Stepped], eos_ids: Sequence[int]
) -> dict[str, Any]:
    """One row a mistake; the active one is marked and says what it did up to the selected step."""
    say = words("run_table")
    columns = [Column(say.text("col_mistake")), Column(say.text("col_expect")), Column(say.text("col_seen"))]
    rows: list[list[Cell | str]] = [
        [
            Cell(say.text(f"mistake_{name}"), tone="accent" if name == active else ""),
            say.text(f"expect_{name}"),
            Cell(evidence(name, step, steps, eos_ids), tone="warn") if name == active else Cell(say.text("off"), "dim"),
        ]
        for name in MISTAKES
    ]
    return table.value(columns, rows, caption=say.text("mistakes_note"))


def evidence(name: Mistake, step: Stepped | None, steps: Sequence[Stepped], eos_ids: Sequence[int]) -> str:
    """What the mistake did, in numbers of the run."""
    say = words("run_table")
    if name == "eos_not_watched":
        ended = next((item.step for item in steps if item.token_id in eos_ids), None)
        if ended is None:
            return say.text("unseen_eos_not_watched")
        return say.text("seen_eos_not_watched", count=len(steps) - ended - 1, step=ended)
    decoded = [item for item in steps if item.step > 0]
    if step is None or step.step == 0:
        return say.text("no_step")
    if name == "mask_not_extended":
        mask = step.shapes["attention_mask"][-1]
        return say.text("seen_mask_not_extended", mask=mask, context=step.position, hidden=step.position - mask)
    first, last = (fmean(item.seconds for item in part) for part in (decoded[:FEW], decoded[-FEW:]))
    times = {"first": seconds_text(first), "last": seconds_text(last)}
    return say.text("seen_history_reencoded", fed=step.shapes["input_ids"][-1], **times)
