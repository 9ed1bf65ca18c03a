"""The residual stream at one position: how long it is, what each part adds to it, and what that does to one logit."""

import torch
from torch.nn.functional import cosine_similarity, normalize

from engine.answers.residual import Residual
from engine.conversation import Conversation
from engine.probes.contributions import score, shares
from engine.probes.inside import context_of, inside
from engine.probes.lens import next_token
from engine.stages.vocabulary import vocabulary
from engine.trace import Floats


def residual(conversation: Conversation, *, turn: int | None = None, position: int | None = None) -> Residual:
    """The stream at `position` of a turn (None: the last one fed), in one decode step.

    Raises `ExperimentError` for a turn or position that is not there, `AnatomyError` for a model whose parts cannot
    be found.
    """
    turn, context = context_of(conversation, turn, position)
    following = next_token(conversation, turn, len(context))
    found = inside(conversation, turn=turn, position=len(context) - 1)
    target = int(found.logits.argmax()) if following is None else following
    with torch.inference_mode():
        stream, attention, feed_forward = (part.float() for part in (found.stream, found.attention, found.feed_forward))
        middle = stream[:-1] + attention
        additions = torch.cat([stream[:1], attention, feed_forward])
        given = shares(found.parts, found.stream[-1], additions, target)
        layers = len(attention)
        logit = float(found.logits[target])
        uncapped = logit if found.parts.softcap is None else score(found.parts, found.normed, target)
        parts = given.parts.float().numpy(force=True)
        unit = normalize(stream, dim=-1)
        return Residual(
            turn=turn,
            position=found.position,
            norms=_norms(stream),
            attention_norms=_norms(attention),
            feed_forward_norms=_norms(feed_forward),
            attention_cosines=cosine_similarity(attention, stream[:-1]).numpy(force=True),
            feed_forward_cosines=cosine_similarity(feed_forward, middle).numpy(force=True),
            cosines=(unit @ unit.T).clamp(-1, 1).numpy(force=True),
            normed_norm=float(found.normed.float().norm()),
            target_id=target,
            target_bytes=vocabulary(conversation.loaded.tokenizer).bytes(target),
            target_chosen=following is not None,
            embedding_share=float(parts[0]),
            attention_shares=parts[1 : layers + 1],
            feed_forward_shares=parts[layers + 1 :],
            constant_share=given.constant,
            uncapped=uncapped,
            logit=logit,
            softcap=found.parts.softcap,
            max_difference=abs(float(given.parts.sum()) + given.constant - uncapped),
        )


def _norms(vectors: torch.Tensor) -> Floats:
    found: Floats = vectors.norm(dim=-1).numpy(force=True)
    return found
