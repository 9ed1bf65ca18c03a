"""What a measurement gives, and the table of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One measured number beside its bar: a limit that it must reach ("at least") or keep to ("at most").

    `bar` None reports the number without judging it. A number that is not finite never passes.
    """

    name: str
    value: float
    unit: str
    bar: float | None = None
    side: Literal["at least", "at most"] = "at most"
    note: str = ""  # the absolute numbers behind a ratio, or how the number spreads

    @property
    def missed(self) -> bool:
        if self.bar is None:
            return not math.isfinite(self.value)
        return not (self.value >= self.bar if self.side == "at least" else self.value <= self.bar)

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """Name, figure, bar, verdict and note as they stand in the table."""
        bar = "" if self.bar is None else f"{self.side} {self.bar:g}"
        verdict = "miss" if self.missed else "ok" if self.bar is not None else "report"
        return self.name, f"{self.value:.2f} {self.unit}", bar, verdict, self.note


def table(figures: Sequence[Figure]) -> str:
    """An aligned table, one figure a line."""
    lines = [("measurement", "figure", "bar", "", "behind it"), *(figure.cells for figure in figures)]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        f"{name:<{widths[0]}}  {value:>{widths[1]}}  {bar:<{widths[2]}}  {verdict:<{widths[3]}}  {note}".rstrip()
        for name, value, bar, verdict, note in lines
    )
