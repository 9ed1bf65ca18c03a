"""Which tokens of a step are worth keeping, and what every stage made of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

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
        row = snapshot.logits.numpy(force=True)
        if snapshot.stage.kept == len(row):
            ids.update(numerics.top_k(row, count).tolist())
        else:
            # A row that is mostly −inf is slow to partition.
            left = np.flatnonzero(row > -np.inf)
            ids.update(left[numerics.top_k(row[left], count)].tolist())
    return scores_of(snapshots, sorted(ids))


def scores_of(snapshots: Sequence[Snapshot], ids: Sequence[int]) -> Candidates:
    """The given tokens through all stages."""
    index = torch.tensor(list(ids), dtype=torch.long, device=snapshots[0].logits.device)
    logits = torch.stack([snapshot.logits[index] for snapshot in snapshots]).numpy(force=True)
    probabilities = torch.stack([snapshot.probabilities(index) for snapshot in snapshots]).numpy(force=True)
    found = index.numpy(force=True)
    order = np.lexsort((found, -logits[0], -probabilities[-1]))
    return Candidates(ids=found[order].astype(np.int32), logits=logits[:, order], probabilities=probabilities[:, order])


def best_eos(snapshots: Sequence[Snapshot], eos_ids: Sequence[int]) -> EosScore | None:
    """The end-of-sequence token that the model itself puts first; None for a model without one."""
    if not eos_ids:
        return None
    own = snapshots[0]
    index = torch.tensor(list(eos_ids), dtype=torch.long, device=own.logits.device)
    token_id = eos_ids[int(torch.argmax(own.logits[index]))]
    return EosScore(
        token_id=token_id,
        logit=float(own.logits[token_id]),
        probability=float(own.probabilities(index.new_tensor([token_id]))),
        rank=int(torch.count_nonzero(own.logits > own.logits[token_id])) + 1,
        cut_by=cut_by(snapshots, token_id),
    )


def cut_by(snapshots: Sequence[Snapshot], token_id: int) -> str | None:
    """The stage that gave the token −inf; None while it can still be drawn."""
    return next((item.stage.name for item in snapshots if float(item.logits[token_id]) == -torch.inf), None)
