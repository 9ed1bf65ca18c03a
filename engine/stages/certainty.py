"""Is a choice the same for all logits within a tolerance? Then it need not be made on the very same bits.

Rows computed together differ from rows computed alone in the last digits. Every link of the chain but `typical_p`
either masks by the ids alone, or grows with a token's own logit and falls with those of the others: the scales are
increasing functions of the one logit; top-k, top-p and min-p rather keep a token the higher it is, and the lower those
above it are. So the worst that a tolerance can do to one token is a single row of logits, and the chain itself is asked
what it makes of it.
"""

import torch

from engine.stages.processors import Chain, Link

_SCALES = frozenset({"repetition_penalty", "temperature"})
_CUTS = frozenset({"top_k", "top_p", "min_p"})
_MASKS = frozenset({"no_repeat_ngram_size", "bad_words", "min_new_tokens", "suppress_tokens", "grammar"})

#: Tokens that could win where a cut let them through: asked one by one, and where there are more nothing is certain.
MAX_RIVALS = 12


def can_tell(chain: Chain) -> bool:
    """True where `certain` can tell: no other links than it knows, and no penalty after a cut."""
    names = [link.name for link in chain.links]
    if not set(names) <= _SCALES | _CUTS | _MASKS:
        return False
    after_cut = names[next((index for index, name in enumerate(names) if name in _CUTS), len(names)) :]
    return "repetition_penalty" not in after_cut


def certain(
    chain: Chain, input_ids: torch.Tensor, logits: torch.Tensor, noise: torch.Tensor | None, tolerance: float
) -> bool:
    """True where every row of logits within `tolerance` of `logits` [vocab] leads to the same token.

    `input_ids` [1, n] is prompt and answer so far; `noise` [vocab] are the arrival times that the draw will use, None
    where the best token is taken. May say False where the token would be the same all the same. The chain must be
    one that `can_tell` takes.
    """
    first, rest = _parted(chain)
    low, high = (_run(first, input_ids, logits + by) for by in (-tolerance, tolerance))
    scales = [link for link in rest if link.name in _SCALES]
    least, most = (_run(scales, input_ids, bound) for bound in (low, high))
    if noise is not None:
        least, most = (bound - noise.log() for bound in (least, most))
    masked = _masked(chain, input_ids, logits)
    final = _run(rest, input_ids, _run(first, input_ids, logits))
    speeds = final if noise is None else final - noise.log()
    winner = int(torch.argmax(speeds))
    rivals = (most >= least[winner]) & ~masked
    rivals[winner] = False
    rival_ids = torch.nonzero(rivals).flatten().tolist()
    cuts = [link for link in rest if link.name in _CUTS]
    if not cuts:
        return not rival_ids
    if len(rival_ids) > MAX_RIVALS:
        return False
    if not _stays(rest, input_ids, _worst(low, high, winner), winner):
        return False
    return not any(_stays(rest, input_ids, _best(low, high, rival), rival) for rival in rival_ids)


def _parted(chain: Chain) -> tuple[list[Link], list[Link]]:
    """The links up to the penalty, which scales some tokens more than others, and those after it."""
    names = [link.name for link in chain.links]
    count = names.index("repetition_penalty") + 1 if "repetition_penalty" in names else 0
    return list(chain.links[:count]), list(chain.links[count:])


def _run(links: list[Link], input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    for link in links:
        scores = link.processor(input_ids, scores[None])[0]
    return scores


def _masked(chain: Chain, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Which tokens [vocab] are forbidden whatever their logits are."""
    masks = [link for link in chain.links if link.name in _MASKS]
    return _run(masks, input_ids, torch.zeros_like(logits)) == -torch.inf


def _stays(links: list[Link], input_ids: torch.Tensor, scores: torch.Tensor, token: int) -> bool:
    return bool(_run(links, input_ids, scores)[token] > -torch.inf)


def _worst(low: torch.Tensor, high: torch.Tensor, token: int) -> torch.Tensor:
    """The row within the bounds that makes it hardest for a token to stay: all that can be above it are high."""
    row = torch.where(high >= low[token], high, low)
    row[token] = low[token]
    return row


def _best(low: torch.Tensor, high: torch.Tensor, token: int) -> torch.Tensor:
    """The row within the bounds that makes it easiest: as few above it as can be, and as much below it."""
    top = high[token]
    row = torch.where(low > top, low, torch.minimum(high, torch.nextafter(top, top - 1)))
    row[token] = top
    return row
