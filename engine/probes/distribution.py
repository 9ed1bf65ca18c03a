"""Any token at every stage of a step: logit, probability and rank over the whole vocabulary."""

from collections.abc import Sequence

import torch

from engine.answers.distribution import Distribution
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.limits import check_id
from engine.probes.recompute import stages_of
from engine.said import said
from engine.stages.candidates import cut_by, follow, scores_of
from engine.stages.snapshots import Snapshot
from engine.stages.vocabulary import vocabulary
from engine.trace import Ints

MAX_TOKENS = 500


def distribution(
    conversation: Conversation,
    *,
    step: int,
    turn: int | None = None,
    token_ids: Sequence[int] = (),
    query: str = "",
    count: int = 0,
) -> Distribution:
    """Look tokens up: by id, by the text they stand for (with and without a leading space), and the `count` best.

    A text that is no single token is looked up by the first token of its own tokenisation. `turn` None is the current
    one. One forward of one token at most where the cache still holds the step. Raises `ExperimentError` for a turn,
    step or id that is not there or a `count` beyond 0 to 500, `NoCandidate` where the step ended in that.
    """
    if not 0 <= count <= MAX_TOKENS:
        raise ExperimentError("count", said("best_range", most=MAX_TOKENS, count=count))
    facts = conversation.loaded.facts
    turn = max(0, conversation.trace.turns - 1) if turn is None else turn
    for token_id in token_ids:
        check_id(token_id, facts, "token_ids")
    snapshots = stages_of(conversation, turn, step)
    wanted = dict.fromkeys([*token_ids, *find_tokens(conversation, query)])
    if count:
        wanted |= dict.fromkeys(follow(snapshots, (), count).ids.tolist())
    found = scores_of(snapshots, list(wanted)[:MAX_TOKENS])
    ids = found.ids.tolist()
    words = vocabulary(conversation.loaded.tokenizer)
    return Distribution(
        turn=turn,
        step=step,
        stages=tuple(snapshot.stage for snapshot in snapshots),
        token_ids=found.ids,
        token_bytes=tuple(words.bytes(token_id) for token_id in ids),
        logits=found.logits,
        probabilities=found.probabilities,
        ranks=_ranks(snapshots, ids),
        cut_by=tuple(cut_by(snapshots, token_id) for token_id in ids),
    )


def find_tokens(conversation: Conversation, query: str) -> tuple[int, ...]:
    """Ids of the tokens that stand for `query`, or of the first token of its tokenisation; () for no query."""
    tokenizer = conversation.loaded.tokenizer
    if not query:
        return ()
    exact = vocabulary(tokenizer).find(query)
    return exact or tuple(tokenizer.encode(query, add_special_tokens=False)[:1])


def _ranks(snapshots: Sequence[Snapshot], ids: Sequence[int]) -> Ints:
    """Rank of each id at each stage [s, c]: one more than the tokens with a strictly greater logit."""
    index = torch.tensor(list(ids), dtype=torch.long, device=snapshots[0].logits.device)
    rows = []
    for snapshot in snapshots:
        ordered = torch.sort(snapshot.logits).values
        own = snapshot.logits[index]
        greater = len(ordered) - torch.searchsorted(ordered, own, right=True)
        rows.append(torch.where(own == -torch.inf, 0, greater + 1))
    return torch.stack(rows).int().numpy(force=True)
