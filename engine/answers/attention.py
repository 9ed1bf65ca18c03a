"""Where the heads look from one position."""

from dataclasses import dataclass
from typing import Literal

from engine.trace import Floats

HeadKind = Literal["self", "first", "previous", "content", "spread"]


@dataclass(frozen=True, eq=False)
class HeadFigures:
    """Figures of heads, each array [...] float32. Shares lie in [0, 1]; at positions 0 and 1 places fall together."""

    entropy: Floats  # nats
    evenness: Floats  # entropy ÷ ln(visible positions), 0 where only one is visible
    on_self: Floats
    on_first: Floats  # 0 where position 0 is out of sight
    on_previous: Floats
    elsewhere: Floats  # the strongest single one on any other position


HiddenBy = Literal["window", "padding"]


@dataclass(frozen=True, eq=False)
class Moves:
    """One head at one position, over the m positions in its reach: scores, scale, mask, softmax, weighted values."""

    raw: Floats  # [m], q · k
    scaled: Floats  # [m], raw × scaling, then capped where the model caps
    masked: Floats  # [m], −inf where hidden
    hidden_by: tuple[HiddenBy | None, ...]  # [m]; later positions, hidden by the causal mask, are not in reach
    weights: Floats  # [m], sum 1
    value_norms: Floats  # [m], length of each value vector; weighted it is weights × value_norms
    mixed_norm: float  # length of the sum of the weighted values
    scaling: float
    softcap: float | None


@dataclass(frozen=True, eq=False)
class AttentionAt:
    """Attention of a model with L layers at one position, whose reach are the positions `first` … `position`."""

    turn: int
    position: int
    layer: int
    head: int
    first: int  # > 0 only where a sliding layer's cache has dropped what came before
    later: int  # positions of the context after this one: the causal mask hides them
    weights: Floats  # [heads, m], of the chosen layer; each row sums to 1
    figures: HeadFigures  # each [L, heads]
    kinds: tuple[tuple[HeadKind, ...], ...]  # [L][heads]
    moves: Moves  # of the chosen head
    kv_head: int
    group: tuple[int, ...]  # the query heads that share that key/value head, this one included
    window: int | None  # positions that a sliding layer sees, itself included; None for one that sees all
