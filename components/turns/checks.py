"""What a person asks for: the same turn cold, and what a time in the system prompt does to reuse."""

from typing import Any

from components.copy import sentences, words
from components.units import seconds_text
from components.visible import visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.cold_turn import ColdTurn
from engine.answers.time_in_prompt import TimeInPrompt
from engine.trace import Rendered


def cold_table(found: ColdTurn | None) -> dict[str, Any]:
    """Two rows, with reuse and cold, and whether anything but the time differs."""
    say = words("turns")
    if found is None:
        return table.value([], [], caption=say.text("cold_empty"))
    columns = [Column(say.text("col_way")), *(Column(say.text(key), align="right") for key in _COLD)]
    slowest = max(found.warm_seconds, found.cold_seconds)
    rows: list[list[Cell | str]] = [
        [
            say.text("way_warm" if found.again else "way_then"),
            *_numbers(found.reused, found.positions, found.warm_seconds, slowest),
        ],
        [say.text("way_cold"), *_numbers(0, found.positions, found.cold_seconds, slowest)],
    ]
    return table.value(columns, rows, caption=_verdict(found))


_COLD = ("col_from_cache", "col_computed", "col_time", "col_each")


def _numbers(reused: int, positions: int, seconds: float, slowest: float) -> list[Cell | str]:
    computed = positions - reused
    bar = seconds / slowest if slowest else None
    return [f"{reused:,}", f"{computed:,}", Cell(seconds_text(seconds), bar=bar), f"{seconds / computed * 1000:.2f} ms"]


def _verdict(found: ColdTurn) -> str:
    say = words("turns")
    saved = found.cold_seconds - found.warm_seconds
    if found.reused == 0:
        time = say.text("cold_nothing")
    else:
        time = say.text("cold_saved" if saved > 0 else "cold_lost", seconds=seconds_text(abs(saved)))
    key = "cold_logits" if found.max_difference else "cold_logits_same"
    logits = say.text(key, difference=found.max_difference)
    if not found.ours:
        return sentences(time, logits)
    key = "cold_same" if found.first_difference is None else "cold_differ"
    return sentences(time, logits, say.text(key, count=len(found.ours), step=found.first_difference))


def prefix_note(rendered: Rendered | None) -> dict[str, Any]:
    """What the cache of system prompts had for the first turn of this chat."""
    say = words("turns")
    found = rendered.prefix if rendered else None
    if rendered is None or found is None:
        return token_strip.value([Group((), label=say.text("prefix_none"), note=say.text("prefix_how"), as_text=True)])
    numbers = {"entries": found.entries, "system": found.system, "common": found.common, "reused": rendered.reused}
    if found.hit and rendered.reused:
        label, note = say.text("prefix_hit", **numbers), say.text("prefix_hit_note", **numbers)
    elif found.entries == 0:
        label, note = say.text("prefix_miss"), say.text("prefix_first", **numbers)
    elif found.parted is None or not rendered.reused:
        label, note = say.text("prefix_miss"), say.text("prefix_other", **numbers)
    else:
        place = found.parted.position
        text = {
            "position": place,
            "shared": visible_bytes(b"".join(rendered.token_bytes[max(0, place - 6) : place])),
            "new": visible_bytes(rendered.token_bytes[place]),
            "new_id": found.parted.new_id,
            "cached_id": found.parted.cached_id,
        }
        label, note = say.text("prefix_part", **numbers), say.text("prefix_broken", **numbers, **text)
    return token_strip.value([Group((), label=label, note=sentences(note, say.text("prefix_how")), as_text=True)])


def time_table(found: TimeInPrompt | None) -> dict[str, Any]:
    """The same system prompt a minute later, with the time put first and put last."""
    say = words("turns")
    if found is None:
        return table.value([], [], caption=say.text("time_empty"))
    columns = [
        Column(say.text("col_time_place")),
        Column(say.text("col_context"), align="right"),
        Column(say.text("col_reusable"), align="right"),
        Column(say.text("col_broken"), mono=True),
    ]
    rows: list[list[Cell | str]] = []
    for case in found.cases:
        shared, old, new = (visible_bytes(data) for data in (case.shared, case.old, case.new))
        rows.append(
            [
                say.text(f"time_{case.place}"),
                f"{case.positions:,}",
                Cell(f"{case.common:,}", bar=case.common / case.positions),
                say.text("broken", shared=shared, old=old, new=new),
            ]
        )
    return table.value(columns, rows, caption=say.text("time_caption"))
