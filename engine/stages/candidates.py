"""Which tokens of a step are worth keeping, and what every stage made of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine import numerics
from engine.stages.snapshots import Snapshot
from engine.trace import EosScore, Floats, Ints

#: How many of the best tokens are followed: of the model's own, and of those that are left at the end.
FOLLOWED = 12


@dataclass(frozen=True, eq=False)
class Candidates:
    """c tokens through s stages, by falling probability after the last stage, then by the model's own."""

    ids: Ints  # [c]
    logits: Floats  # [s, c], −inf where cut
    probabilities: Floats  # [s, c], 0 where cut


def follow(snapshots: Sequence[Snapshot], always: Sequence[int], count: int = FOLLOWED) -> Candidates:
    """The best `count` tokens of the first and of the last stage, and those of `always`, through all stages."""
    ids = set(always)
    for snapshot in (snapshots[0], snapshots[-1]):
        ids.update(_best(snapshot, count))
    return scores_of(snapshots, sorted(ids))


def _best(snapshot: Snapshot, count: int) -> list[int]:
    if snapshot.left is None:
        return [int(token) for token in numerics.top_k(snapshot.row, count)]
    left = snapshot.left.numpy(force=True)
    return [int(token) for token in left[numerics.top_k(snapshot.row[left], count)]]


def scores_of(snapshots: Sequence[Snapshot], ids: Sequence[int]) -> Candidates:
    """The given tokens through all stages."""
    found = np.array(list(ids), dtype=np.int64)
    logits = np.stack([snapshot.row[found] for snapshot in snapshots])
    probabilities = np.stack([snapshot.probabilities(found) for snapshot in snapshots])
    order = np.lexsort((found, -logits[0], -probabilities[-1]))
    return Candidates(ids=found[order].astype(np.int32), logits=logits[:, order], probabilities=probabilities[:, order])


def best_eos(snapshots: Sequence[Snapshot], eos_ids: Sequence[int]) -> EosScore | None:
    """The end-of-sequence token that the model itself puts first; None for a model without one."""
    if not eos_ids:
        return None
    own = snapshots[0]
    row = own.row
    token_id = max(eos_ids, key=lambda token: float(row[token]))
    return EosScore(
        token_id=token_id,
        logit=float(row[token_id]),
        probability=float(own.probabilities(np.array(token_id))),
        rank=numerics.rank(row, token_id),
        cut_by=cut_by(snapshots, token_id),
    )


def cut_by(snapshots: Sequence[Snapshot], token_id: int) -> str | None:
    """The stage that gave the token −inf; None while it can still be drawn."""
    return next((item.stage.name for item in snapshots if item.row[token_id] == -math.inf), None)
