"""The KV cache in numbers: by layer, by formula beside the measured bytes, and on other models."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from components.copy import sentences, words
from components.panel import View
from components.units import bytes_text, seconds_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.uncached import Uncached
from engine.facts import LayerKind, ModelFacts, kv_bytes_per_token
from engine.trace import Shape, Stepped

PRECISIONS = (("fp32", 4), ("bf16", 2))
ROUNDING = 1e-3  # logits of one float32 forward differ by less when its sums are taken in another order
LONG = 131_072  # positions of the last column: what a long context costs


@dataclass(frozen=True)
class LayerRun:
    """Neighbouring layers of one kind, and what each of them holds. `shape` is that of K and of V, None for neither."""

    first: int
    last: int
    kind: LayerKind
    shape: Shape | None
    bytes_each: int

    @property
    def layers(self) -> int:
        return self.last - self.first + 1


def layer_runs(facts: ModelFacts, tokens: int) -> list[LayerRun]:
    """All layers after `tokens` positions, equal neighbours together."""
    runs = []
    for kind, members in groupby(enumerate(facts.layer_kinds), key=lambda item: item[1]):
        indices = [index for index, _ in members]
        size = facts.layer_kv_bytes(kind, tokens)
        held = size // kv_bytes_per_token(1, facts.kv_heads, facts.head_dim, facts.itemsize)
        shape = (1, facts.kv_heads, held, facts.head_dim) if kind in {"full", "sliding"} else None
        runs.append(LayerRun(indices[0], indices[-1], kind, shape, size))
    return runs


def layers_table(facts: ModelFacts, step: Stepped) -> dict[str, Any]:
    """One row for neighbouring layers of one kind; the last row adds up and is held against the measured bytes."""
    say = words("kv_cache")
    columns = [
        Column(say.text("col_layers")),
        Column(say.text("col_kind")),
        Column(say.text("col_keys"), mono=True, help=say.text("help_shape")),
        Column(say.text("col_values"), mono=True, help=say.text("help_shape")),
        Column(say.text("col_each"), align="right"),
        Column(say.text("col_together"), align="right"),
    ]
    runs = layer_runs(facts, step.kv_tokens)
    rows: list[list[Cell | str]] = [
        [
            str(run.first) if run.layers == 1 else f"{run.first}–{run.last}",
            say.text(f"kind_{run.kind}"),
            _shape_text(run.shape),
            _shape_text(run.shape),
            f"{run.bytes_each:,}",
            f"{run.bytes_each * run.layers:,}",
        ]
        for run in runs
    ]
    total = sum(run.bytes_each * run.layers for run in runs)
    rows.append([say.text("all_layers"), "", "", "", "", f"{total:,}"])
    rows.append([say.text("measured"), say.text("sum_of_tensors"), "", "", "", _checked(step.kv_bytes, total)])
    return table.value(columns, rows, caption=say.text("layers_caption", tokens=step.kv_tokens))


def formula_table(facts: ModelFacts, step: Stepped) -> dict[str, Any]:
    """The formula with this model's numbers, in two precisions, and the measured bytes beside it."""
    say = words("kv_cache")
    columns = [
        Column(""),
        *(Column(say.text("col_precision", name=name, size=size), align="right") for name, size in PRECISIONS),
    ]
    holding = sum(kind in {"full", "sliding"} for kind in facts.layer_kinds)
    each = {size: kv_bytes_per_token(holding, facts.kv_heads, facts.head_dim, size) for _, size in PRECISIONS}
    measured = _checked(step.kv_bytes, facts.kv_bytes(step.kv_tokens))
    here = [measured if size == facts.itemsize else Cell("–", tone="dim") for _, size in PRECISIONS]
    rows: list[list[Cell | str]] = [
        [say.text("row_position"), *[f"{each[size]:,} B" for _, size in PRECISIONS]],
        *[_positions_row(facts, count) for count in (step.kv_tokens, facts.context)],
        [say.text("row_measured", dtype=facts.dtype), *here],
    ]
    return table.value(columns, rows, caption=formula_text(facts, step))


def formula_text(facts: ModelFacts, step: Stepped) -> str:
    """The formula written out: "2 × 30 layers × 3 KV heads × 64 × 4 bytes = 46,080 bytes a position; …"."""
    say = words("kv_cache")
    most = facts.sliding_window - 1 if "sliding" in facts.layer_kinds and facts.sliding_window else None
    full, sliding = facts.layer_kinds.count("full"), facts.layer_kinds.count("sliding")
    text = say.text(
        "formula" if most is None or step.kv_tokens <= most else "formula_slid",
        layers=full + sliding,
        full=full,
        sliding=sliding,
        kv_heads=facts.kv_heads,
        head_dim=facts.head_dim,
        itemsize=facts.itemsize,
        each=facts.kv_bytes_per_token,
        one=kv_bytes_per_token(1, facts.kv_heads, facts.head_dim, facts.itemsize),
        tokens=step.kv_tokens,
        held=most,
        total=facts.kv_bytes(step.kv_tokens),
    )
    return text if most is None else sentences(text, say.text("formula_sliding", held=most))


def models_table(view: View, step: Stepped) -> dict[str, Any]:
    """The same formula for every model of the catalogue in bf16, with grouped heads and without."""
    say = words("kv_cache")
    columns = [
        Column(say.text("col_model")),
        Column(say.text("col_layer_count"), align="right", help=say.text("help_layer_count")),
        Column(say.text("col_heads"), align="right", help=say.text("help_heads")),
        Column("head_dim", align="right"),
        Column(say.text("col_position"), align="right"),
        Column(say.text("col_positions_held", tokens=step.kv_tokens), align="right"),
        Column(say.text("col_positions_held", tokens=LONG), align="right"),
        Column(say.text("col_ungrouped"), align="right", help=say.text("help_ungrouped")),
    ]
    highest = max((entry.kv_bytes_per_token(2) for entry in view.catalog), default=1)
    return table.value(
        columns,
        [_model_row(entry, step.kv_tokens, highest, own=entry.id == view.facts.model_id) for entry in view.catalog],
        caption=say.text("models_caption"),
    )


def _model_row(entry: Any, tokens: int, highest: int, *, own: bool) -> list[Cell | str]:
    each = entry.kv_bytes_per_token(2)
    ratio = entry.heads // entry.kv_heads
    return [
        Cell(entry.title, tone="accent" if own else ""),
        str(entry.layers) if entry.kv_layers is None else f"{entry.layers} → {entry.kv_layers}",
        f"{entry.heads} → {entry.kv_heads}",
        str(entry.head_dim),
        Cell(bytes_text(each), bar=each / highest),
        bytes_text(each * tokens),
        bytes_text(each * LONG),
        Cell(bytes_text(each * LONG * ratio), tone="dim" if ratio == 1 else ""),
    ]


def uncached_table(found: Uncached | None) -> dict[str, Any]:
    """One step with the cache and without any."""
    say = words("kv_cache")
    if found is None:
        return table.value([], [], caption=say.text("uncached_empty"))
    columns = [
        Column(say.text("col_way")),
        Column(say.text("col_reused"), align="right"),
        Column(say.text("col_computed"), align="right"),
        Column(say.text("col_time"), align="right"),
    ]
    longest = max(found.cached_seconds, found.uncached_seconds) or 1.0
    rows: list[list[Cell | str]] = [
        [say.text(way), str(reused), str(count), Cell(seconds_text(seconds), bar=seconds / longest)]
        for way, reused, count, seconds in (
            ("with_cache", found.reused, found.fed_cached, found.cached_seconds),
            ("without_cache", 0, found.fed_uncached, found.uncached_seconds),
        )
    ]
    key = "uncached_same" if found.same_best else "uncached_other"
    caption = say.text(key, step=found.step, difference=found.max_difference)
    if found.max_difference < ROUNDING:
        caption = sentences(caption, say.text("uncached_rounding"))
    return table.value(columns, rows, caption=caption)


def _positions_row(facts: ModelFacts, tokens: int) -> list[Cell | str]:
    """What the cache takes after `tokens` positions in each precision."""
    here = facts.kv_bytes(tokens)
    sizes = [bytes_text(here * size / facts.itemsize) for _, size in PRECISIONS]
    return [words("kv_cache").text("row_positions", tokens=tokens), *sizes]


def _checked(measured: int, expected: int) -> Cell:
    """The measured bytes with a tick where the formula gives the same."""
    equal = measured == expected
    return Cell(f"{measured:,} {'✓' if equal else '✗'}", tone="ok" if equal else "warn")


def _shape_text(shape: Sequence[int] | None) -> str:
    return "–" if shape is None else f"({', '.join(map(str, shape))})"
