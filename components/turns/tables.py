"""The turns as tables and as a chart: positions, the pairs that differ, and how each answer was closed."""

from collections.abc import Sequence
from typing import Any

from components.copy import sentences, words
from components.drawing import Drawing, drawing
from components.ends import end_text
from components.in_words import translated
from components.turns.cause import Difference
from components.turns.closing import Closing
from components.turns.ledger import TurnRow
from components.turns.matched import Matched
from components.visible import running_text, visible, visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.trace import Rendered

#: Turns that a table or a chart shows: the newest.
SHOWN = 40
COLOURS = {"reused": "var(--cut)", "computed": "var(--s3)", "dropped": "var(--warn)"}


def turns_table(rows: Sequence[TurnRow]) -> dict[str, Any]:
    """One row a turn; each number can be had from its neighbours."""
    say = words("turns")
    keys = ("context", "cached", "reused", "computed", "dropped", "answer", "held")
    columns = [
        Column(say.text("col_turn"), align="right"),
        *(Column(say.text(f"col_{key}"), align="right", help=say.text(f"help_{key}")) for key in keys),
    ]
    cells = [_turn_cells(row) for row in rows[-SHOWN:]]
    return table.value(columns, cells, caption=_sum_text(rows))


def _turn_cells(row: TurnRow) -> list[Cell | str]:
    reused = Cell(
        f"{row.reused:,}",
        tone="accent" if row.source == "prefix" else "",
        bar=row.reused / row.context if row.context else None,
        title=words("turns").text(f"source_{row.source}"),
    )
    return [
        str(row.turn + 1),
        f"{row.context:,}",
        f"{row.cached:,}",
        reused,
        "–" if row.refused else f"{row.computed:,}",
        Cell(f"{row.dropped:,}", tone="warn" if row.dropped else ""),
        f"{row.answer:,}",
        "–" if row.held is None else f"{row.held:,}",
    ]


def _sum_text(rows: Sequence[TurnRow]) -> str:
    """The newest turn's sums written out, so that they can be checked at a glance."""
    say, row = words("turns"), rows[-1]
    fed = row.context + row.answer - 1
    numbers = {
        "turn": row.turn + 1, "reused": row.reused, "computed": row.computed, "context": row.context,
        "cached": row.cached, "kept": row.cached - row.dropped, "dropped": row.dropped,
        "answer": row.answer, "fed": fed, "gone": fed - (row.held or 0), "held": row.held,
        "all": sum(one.context for one in rows), "all_computed": sum(one.computed for one in rows),
    }  # fmt: skip
    parts = [say.text("sum_refused" if row.refused else "sum_context", **numbers)]
    if row.turn and not row.refused:
        parts.append(say.text("sum_dropped", **numbers))
    if row.answer:
        parts.append(say.text("sum_held" if row.held == fed else "sum_slid" if row.held else "sum_no_cache", **numbers))
    if len(rows) > 1:
        parts.append(say.text("sum_all", **numbers))
    return sentences(*parts)


def turns_height(rows: Sequence[TurnRow]) -> int:
    """Pixels of the chart: a bar a turn."""
    return 96 + 30 * min(len(rows), SHOWN)


def turns_figure(rows: Sequence[TurnRow]) -> Drawing:
    """A bar a turn: reused and computed make its context, dropped stands after them."""
    say, shown = words("turns"), rows[-SHOWN:]
    labels = [say.text("turn", turn=row.turn + 1) for row in shown]
    return drawing(
        turns_height(rows),
        [
            {
                "type": "bar",
                "orientation": "h",
                "y": list(range(len(shown))),
                "x": [getattr(row, part) for row in shown],
                "name": say.text(f"part_{part}"),
                "marker": {"color": colour},
                "hovertext": [say.text(f"hover_{part}", turn=row.turn + 1, count=getattr(row, part)) for row in shown],
                "hoverinfo": "text",
            }
            for part, colour in COLOURS.items()
        ],
        barmode="stack",
        margin={"l": 52, "r": 8, "t": 26, "b": 36},
        legend={"traceorder": "normal", "itemwidth": 30, "font": {"size": 10}},
        xaxis={"title": {"text": say.text("axis_positions")}, "rangemode": "tozero"},
        yaxis={"tickvals": list(range(len(shown))), "ticktext": labels, "autorange": "reversed", "showgrid": False},
        showlegend=True,
    )


def differences_table(
    rendered: Sequence[Rendered], found: Sequence[Difference | Matched | None], turn: int
) -> dict[str, Any]:
    """One row for each turn after the first: the pair that differs, the text around it, and the likely cause.

    Where no pair differs, `found` says what was taken over. A position is one of `turn`, the selected one, so the rows
    of other turns lead nowhere.
    """
    say = words("turns")
    if len(rendered) < 2:
        return table.value([], [], caption=say.text("differences_empty"))
    columns = [
        Column(say.text("col_turn"), align="right"),
        Column(say.text("col_position"), align="right"),
        Column(say.text("col_cached_id"), mono=True),
        Column(say.text("col_new_id"), mono=True),
        Column(say.text("col_cause")),
    ]
    pairs = list(zip(rendered, found, strict=True))[1:][-SHOWN:]
    cells = [_difference_cells(one, difference) for one, difference in pairs]
    keys = [{"position": one.position} if isinstance(one, Difference) and one.turn == turn else {} for _, one in pairs]
    return table.value(columns, cells, caption=say.text("differences_caption"), key=keys)


def _difference_cells(rendered: Rendered, difference: Difference | Matched | None) -> list[Cell | str]:
    say = words("turns")
    if not isinstance(difference, Difference):
        return [str(rendered.turn + 1), "–", "–", "–", _matched_text(rendered, difference)]
    shared, old, new = (visible_bytes(data) for data in (difference.shared, difference.old, difference.new))
    cause = sentences(say.text(f"cause_{difference.cause}"), *_refusal(rendered))
    return [
        str(rendered.turn + 1),
        f"{difference.position:,}",
        say.text("side", id=difference.cached_id, shared=shared, text=old),
        say.text("side", id=difference.new_id, shared=shared, text=new),
        cause,
    ]


def _matched_text(rendered: Rendered, matched: Matched | None) -> str:
    """Why there is no pair that differs."""
    if matched is None:
        return "–"
    numbers = {"cached": matched.cached, "reused": matched.reused, "left": abs(matched.left)}
    return sentences(words("turns").text(f"match:{matched.kind}", **numbers), *_refusal(rendered))


def _refusal(rendered: Rendered) -> list[str]:
    """Why the cache could not be cut back, where that was so."""
    if rendered.refused is None:
        return []
    return [words("turns").text("refused", reason=running_text(translated(rendered.refused)))]


def closings_table(found: Sequence[Closing]) -> dict[str, Any]:
    """One row an answer that has ended."""
    say = words("turns")
    if not found:
        return table.value([], [], caption=say.text("closings_empty"))
    columns = [
        Column(say.text("col_turn"), align="right"),
        Column(say.text("col_ended")),
        Column(say.text("col_last"), mono=True, help=say.text("help_last")),
        Column(say.text("col_written"), mono=True),
        Column(say.text("col_said")),
    ]
    cells: list[list[Cell | str]] = []
    for one in found[-SHOWN:]:
        last, written = visible_bytes(one.last), "–" if one.written is None else visible(one.written)
        key = f"untold_{one.untold}" if one.untold else f"ended_{one.ended}"
        reason = end_text(one.reason)
        cells.append(
            [str(one.turn + 1), reason, last, written, say.text(key, last=last, written=written, reason=reason)]
        )
    return table.value(columns, cells)
