"""How far the logits of one text differ by the way they are computed: float32 addition in another order, nothing else.

The reference is each row by itself in one forward without a cache; every position of every row is compared with it.
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

Way = Callable[[LoadedModel, list[int]], torch.Tensor]


@dataclass(frozen=True)
class Agreement:
    """One way beside the reference."""

    way: str
    positions: int
    largest: float  # |Δlogit|, over all positions and all of the vocabulary
    same_best: int  # positions whose best token is the same


def rows_of(loaded: LoadedModel, *, rows: int = ROWS, length: int = LENGTH) -> list[list[int]]:
    """Different stretches of a real text, as ids. Raises ValueError where the text is too short."""
    ids: list[int] = loaded.tokenizer.encode(TEXT.read_text("utf-8"), add_special_tokens=False)
    if len(ids) < rows * length:
        raise ValueError(f"the text has {len(ids)} tokens, {rows * length} are needed")
    return [ids[row * length : (row + 1) * length] for row in range(rows)]


def agreements(loaded: LoadedModel, rows: list[list[int]]) -> list[Agreement]:
    """Every way beside the reference, over all rows."""
    reference = [_at_once(loaded, row) for row in rows]
    found = [_compared(way, reference, [compute(loaded, row) for row in rows]) for way, compute in WAYS.items()]
    return [*found, _compared(f"{len(rows)} rows in one batch", reference, _together(loaded, rows))]


def measure(loaded: LoadedModel, *, rows: int = ROWS, length: int = LENGTH) -> list[Figure]:
    """The largest difference of each way, in millionths of a logit."""
    return [
        Figure(
            f"max |Δlogit|, {one.way}",
            one.largest * 1e6,
            "× 10⁻⁶",
            BAR * 1e6,
            note=f"the same best token at {one.same_best:,} of {one.positions:,} positions",
        )
        for one in agreements(loaded, rows_of(loaded, rows=rows, length=length))
    ]


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
    return Agreement(
        way,
        sum(len(one) for one in given),
        max(float((ours - theirs).abs().max()) for theirs, ours in pairs),
        sum(int((ours.argmax(-1) == theirs.argmax(-1)).sum()) for theirs, ours in pairs),
    )
