"""Which tokens of a step are worth keeping, and what every stage made of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine import numerics
from engine.stages.snapshots import Snapshot
from engine.trace import EosScore, Floats, Ints

#: How many of the best tokens are followed, of each stage.
FOLLOWED = 12


@dataclass(frozen=True, eq=False)
class Candidates:
    """c tokens through s stages, by falling probability after the last stage, then by the model's own."""

    ids: Ints  # [c]
    logits: Floats  # [s, c], −inf where cut
    probabilities: Floats  # [s, c], 0 where cut


def follow(snapshots: Sequence[Snapshot], always: Sequence[int], count: int = FOLLOWED) -> Candidates:
    """The best `count` tokens of every stage, and those of `always`, through all stages."""
    ids = set(always)
    for snapshot in snapshots:
        ids.update(numerics.top_k(snapshot.logits.numpy(force=True), count).tolist())
    return scores_of(snapshots, sorted(ids))


def scores_of(snapshots: Sequence[Snapshot], ids: Sequence[int]) -> Candidates:
    """The given tokens through all stages."""
    index = torch.tensor(list(ids), dtype=torch.long, device=snapshots[0].logits.device)
    logits = torch.stack([snapshot.logits[index] for snapshot in snapshots])
    probabilities = torch.stack([snapshot.probabilities(index) for snapshot in snapshots])
    order = sorted(
        range(len(index)), key=lambda at: (-float(probabilities[-1, at]), -float(logits[0, at]), int(index[at]))
    )
    return Candidates(
        ids=index[order].int().numpy(force=True),
        logits=logits[:, order].numpy(force=True),
        probabilities=probabilities[:, order].numpy(force=True),
    )


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
