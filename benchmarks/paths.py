"""How far the logits of one text differ by the way they are computed: float32 addition in another order, nothing else.

The reference is each row by itself in one forward without a cache; every position of every row is compared with it.
docs/numbers.md publishes what this gives.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.figures import Figure
from engine import attention
from engine.kv_cache import new_cache
from engine.model import LoadedModel
from engine.stages.forward import forward, forward_newest
from engine.stages.inputs import make_inputs

TEXT = Path(__file__).resolve().parents[1] / "LICENSE"
#: Rows and tokens of each: 1,024 positions.
ROWS, LENGTH = 8, 128
#: Of |Δlogit|, for logits of float32 around 10.
BAR = 1e-3
TOGETHER = "{rows} rows in one batch"

Way = Callable[[LoadedModel, list[int]], torch.Tensor]


@dataclass(frozen=True)
class Agreement:
    """One way beside the reference."""

    way: str
    positions: int
    largest: float  # |Δlogit|, over all positions and all of the vocabulary
    typical: float  # the median over positions of the largest |Δlogit| there
    same_best: int  # positions whose best token is the same


def rows_of(loaded: LoadedModel, *, rows: int = ROWS, length: int = LENGTH) -> list[list[int]]:
    """Different stretches of a real text, as ids. Raises ValueError where the text is too short."""
    ids: list[int] = loaded.tokenizer.encode(TEXT.read_text("utf-8"), add_special_tokens=False)
    if len(ids) < rows * length:
        raise ValueError(f"the text has {len(ids)} tokens, {rows * length} are needed")
    return [ids[row * length : (row + 1) * length] for row in range(rows)]


def reference_of(loaded: LoadedModel, rows: list[list[int]]) -> list[torch.Tensor]:
    """The logits [position, vocab] of each row, by itself in one forward."""
    return [_at_once(loaded, row) for row in rows]


def agreements(loaded: LoadedModel, rows: list[list[int]], reference: list[torch.Tensor]) -> list[Agreement]:
    """Every way beside the reference, over all rows."""
    found = [_compared(way, reference, [compute(loaded, row) for row in rows]) for way, compute in WAYS.items()]
    return [*found, _compared(TOGETHER.format(rows=len(rows)), reference, _together(loaded, rows))]


def measure(loaded: LoadedModel, *, rows: int = ROWS, length: int = LENGTH) -> list[Figure]:
    """The largest difference of each way, and what it must reach to change the best token: millionths of a logit."""
    ids = rows_of(loaded, rows=rows, length=length)
    reference = reference_of(loaded, ids)
    gaps = gaps_of(reference)
    return [
        *(
            Figure(
                f"max |Δlogit|, {one.way}",
                one.largest * 1e6,
                "× 10⁻⁶",
                BAR * 1e6,
                note=(
                    f"median {one.typical * 1e6:.1f};"
                    f" the same best token at {one.same_best:,} of {one.positions:,} positions"
                ),
            )
            for one in agreements(loaded, ids, reference)
        ),
        Figure(
            "smallest gap between the two best",
            float(gaps[0]) * 1e6,
            "× 10⁻⁶",
            note=f"median {float(gaps.median()):.2f} of a logit; under 0.01 at {int((gaps < 0.01).sum())} positions",
        ),
    ]


def gaps_of(logits: list[torch.Tensor]) -> torch.Tensor:
    """By how much the best token of each position leads, smallest first."""
    best = torch.cat(logits).topk(2).values
    return (best[:, 0] - best[:, 1]).sort().values


def _at_once(loaded: LoadedModel, row: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        ids = torch.tensor([row], device=loaded.device)
        logits: torch.Tensor = loaded.model(input_ids=ids, use_cache=False).logits[0].float()
    return logits


def _one_by_one(loaded: LoadedModel, row: list[int]) -> torch.Tensor:
    """As the loop does it after the prompt: one token a forward, with the cache."""
    cache = new_cache(loaded.model.config)
    given = [
        forward(loaded.model, make_inputs([token], past=past, device=loaded.device), cache).logits
        for past, token in enumerate(row)
    ]
    return torch.stack(given)


def _in_two(loaded: LoadedModel, row: list[int]) -> torch.Tensor:
    """As a second turn does it: one part is in the cache, the rest is prefilled on top."""
    cache, half = new_cache(loaded.model.config), len(row) // 2
    parts = ((row[:half], 0), (row[half:], half))
    given = [
        forward_newest(loaded.model, make_inputs(part, past=past, device=loaded.device), cache, len(part))
        for part, past in parts
    ]
    return torch.cat(given)


def _eager(loaded: LoadedModel, row: list[int]) -> torch.Tensor:
    """With transformers' own eager attention: softmax and products written out."""
    with _attention(loaded, "eager"):
        return _at_once(loaded, row)


def _together(loaded: LoadedModel, rows: list[list[int]]) -> list[torch.Tensor]:
    with torch.inference_mode():
        ids = torch.tensor(rows, device=loaded.device)
        return list(loaded.model(input_ids=ids, use_cache=False).logits.float())


WAYS: dict[str, Way] = {
    "one token at a time, cached": _one_by_one,
    "in two parts, cached": _in_two,
    "eager attention": _eager,
}


@contextmanager
def _attention(loaded: LoadedModel, name: str) -> Iterator[None]:
    """Another attention function for a while; nobody else may use the model meanwhile."""
    loaded.model.set_attn_implementation(name)
    try:
        yield
    finally:
        loaded.model.set_attn_implementation(attention.NAME)


def _compared(way: str, reference: list[torch.Tensor], given: list[torch.Tensor]) -> Agreement:
    pairs = list(zip(reference, given, strict=True))
    differences = torch.cat([(ours - theirs).abs().amax(-1) for theirs, ours in pairs])
    return Agreement(
        way,
        len(differences),
        float(differences.max()),
        float(differences.median()),
        sum(int((ours.argmax(-1) == theirs.argmax(-1)).sum()) for theirs, ours in pairs),
    )
