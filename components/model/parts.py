"""Where the numbers of a model lie: every part with its share, as areas and as a table."""

from collections.abc import Sequence
from typing import Any

from components.copy import listed, sentences, words
from components.drawing import Drawing, drawing
from components.units import bytes_text, share_text
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.model import Model, Part, Weight

ATTENTION: tuple[Part, ...] = ("query", "key", "value", "output")
FEED_FORWARD: tuple[Part, ...] = ("gate", "up", "down", "experts")
ORDER: tuple[Part, ...] = ("embedding", "positions", *ATTENTION, *FEED_FORWARD, "norms", "other", "head")
GROUPS: dict[str, tuple[Part, ...]] = {"attention": ATTENTION, "feed_forward": FEED_FORWARD}
COLORS = {"attention": "var(--s3)", "feed_forward": "var(--s4)", "embedding": "var(--s2)", "head": "var(--s5)"}


def where_note(found: Model, tied: bool) -> dict[str, Any]:
    """The shares in words, and the check of the sum."""
    say, total = words("model"), max(found.counted, 1)
    shares = {name: sum(found.numbers(part) for part in parts) / total for name, parts in GROUPS.items()}
    shares["embedding"] = found.numbers("embedding") / total
    equal = "where_equal" if found.counted == found.parameters else "where_unlike"
    texts = {name: share_text(share) for name, share in {**shares, "rest": 1 - sum(shares.values())}.items()}
    told = [
        say.text("where_said", **texts),
        say.text("where_tied") if tied else "",
        say.text(equal, counted=found.counted, parameters=found.parameters),
    ]
    return token_strip.value([Group([], note=sentences(*told), as_text=True)])


def areas_figure(found: Model, height: int) -> Drawing:
    """A treemap: attention and feed-forward with their projections inside, beside the parts that stand alone."""
    say, total = words("model"), max(found.counted, 1)
    marks: list[tuple[str, str, str, int]] = []  # id, parent, colour, numbers
    for name, parts in GROUPS.items():
        inner = [(part, found.numbers(part)) for part in parts if found.numbers(part)]
        if inner:
            marks.append((name, "", COLORS[name], sum(count for _, count in inner)))
            marks += [(part, name, COLORS[name], count) for part, count in inner]
    alone = [part for part in ORDER if part not in (*ATTENTION, *FEED_FORWARD) and found.numbers(part)]
    marks += [(part, "", COLORS.get(part, "var(--s7)"), found.numbers(part)) for part in alone]
    names = [say.text(_area(mark[0])) for mark in marks]
    return drawing(
        height,
        [
            {
                "type": "treemap",
                "ids": [mark[0] for mark in marks],
                "labels": names,
                "parents": [mark[1] for mark in marks],
                "values": [mark[3] for mark in marks],
                "text": [share_text(mark[3] / total) for mark in marks],
                "textinfo": "label+text",
                "textfont": {"color": "var(--pane)"},
                "branchvalues": "total",
                "marker": {"colors": [mark[2] for mark in marks], "line": {"color": "var(--pane)", "width": 1.5}},
                "tiling": {"pad": 2},
                "pathbar": {"visible": False},
                "hovertext": [
                    say.text("hover_part", name=name, numbers=mark[3], share=share_text(mark[3] / total))
                    for name, mark in zip(names, marks, strict=True)
                ],
                "hoverinfo": "text",
            }
        ],
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
    )


def parts_value(found: Model, tied: bool) -> dict[str, Any]:
    """One part a line: numbers a layer and in all, its share, its bytes; the sum below."""
    say, total = words("model"), max(found.counted, 1)
    columns = [
        Column(say.text("col_part")),
        Column(say.text("col_shape"), mono=True),
        Column(say.text("col_each"), align="right"),
        Column(say.text("col_all"), align="right"),
        Column(say.text("col_share"), align="right"),
        Column(say.text("col_bytes"), align="right"),
    ]
    rows: list[list[Cell | str]] = []
    for part in ORDER:
        count = found.numbers(part)
        if part == "head" and tied and not count:
            rows.append([say.text("part_head"), "", "", Cell(say.text("tied_note"), tone="dim"), "", ""])
        elif count:
            share = Cell(share_text(count / total), bar=count / total)
            size = bytes_text(found.nbytes(part))
            rows.append([say.text(f"part_{part}"), _shape(found, part), _each(found, part), f"{count:,}", share, size])
    sizes = found.by_dtype
    rows.append(
        [
            Cell(say.text("whole"), tone="accent"),
            "",
            "",
            Cell(f"{found.counted:,}", tone="ok" if found.counted == found.parameters else "warn"),
            "",
            bytes_text(sum(size for _, size in sizes.values())),
        ]
    )
    said = [
        say.text("bytes_by_type", dtype=dtype, numbers=numbers, bytes=bytes_text(size))
        for dtype, (numbers, size) in sizes.items()
    ]
    return table.value(columns, rows, caption=listed(said))


def _area(name: str) -> str:
    """The key of an area's label."""
    if name in GROUPS:
        return f"group_{name}"
    return "area_output" if name == "output" else f"part_{name}"


def _each(found: Model, part: Part) -> str:
    """Numbers a layer; lowest and highest where layers are not alike."""
    layers = found.layers(part)
    if not layers:
        return ""
    low, high = min(layers), max(layers)
    return f"{low:,}" if low == high else words("model").text("each_range", low=low, high=high)


def _shape(found: Model, part: Part) -> str:
    """The shape of the part's first tensor, and whether it has others."""
    say = words("model")
    own: Sequence[Weight] = [one for one in found.weights if one.part == part]
    first = own[0]
    text = " × ".join(f"{size:,}" for size in first.shape)
    numbers = 1
    for size in first.shape:
        numbers *= size
    if numbers != first.numbers:
        return say.text("fused", shape=text)
    return text if all(one.shape == first.shape for one in own) else say.text("shapes", shape=text)
