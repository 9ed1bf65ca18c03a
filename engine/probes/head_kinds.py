"""What pattern an attention head shows at one position: figures of its weights, and a name that follows from them."""

from typing import get_args

import numpy as np
import numpy.typing as npt

from engine.answers.attention import HeadFigures, HeadKind
from engine.trace import Floats

KINDS: tuple[HeadKind, ...] = get_args(HeadKind)

#: A place (itself, the first token, the previous token) that takes at least this share names the head.
MAJORITY = 0.5
#: Else a head whose entropy is at least this part of the greatest one possible, ln(visible positions), is spread.
SPREAD = 0.7


def measure(weights: Floats, *, first: int, visible: int) -> HeadFigures:
    """Figures of weights [heads, m] of one position, whose columns are positions `first` … the position itself.

    `visible` of the m columns are not masked.
    """
    heads, columns = weights.shape
    position = first + columns - 1
    none = np.zeros(heads, np.float32)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    entropy = np.maximum(0 - (weights * logs).sum(-1), 0)  # 0 − 0 is 0, where −(0) would be −0
    named = {0, position - 1, position}
    others = [column for column in range(columns) if first + column not in named]
    return HeadFigures(
        entropy=entropy,
        evenness=entropy / np.float32(np.log(visible)) if visible > 1 else none,
        on_self=weights[:, -1],
        on_first=weights[:, 0] if first == 0 else none,
        on_previous=weights[:, -2] if columns > 1 else none,
        elsewhere=weights[:, others].max(-1) if others else none,
    )


def stack(figures: list[HeadFigures]) -> HeadFigures:
    """Figures of several layers as one, each array [L, heads]."""
    return HeadFigures(**{name: np.stack([getattr(one, name) for one in figures]) for name in vars(figures[0])})


def kinds(figures: HeadFigures) -> npt.NDArray[np.int64]:
    """An index into KINDS for every head: the first of three rules that holds.

    1. A named place takes `MAJORITY`: self, first or previous (in this order where places fall together).
    2. The weights are spread: evenness is at least `SPREAD`.
    3. The place with the largest share names it; a position that is none of the three means "content".
    """
    shares = np.stack([figures.on_self, figures.on_first, figures.on_previous, figures.elsewhere], axis=-1)
    named = shares[..., :3].max(-1) >= MAJORITY
    spread = ~named & (figures.evenness >= SPREAD)
    largest = np.where(named, shares[..., :3].argmax(-1), shares.argmax(-1))
    return np.where(spread, KINDS.index("spread"), largest)
