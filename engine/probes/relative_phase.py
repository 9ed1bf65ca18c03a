"""Equal distance, equal score: one query and one key, put at other positions by the model's own rotary turn."""

import numpy as np
import torch

from engine.anatomy import Anatomy, anatomy
from engine.answers.relative_phase import RelativePhase
from engine.conversation import Conversation
from engine.probes.attention import check_head
from engine.probes.attention_matrix import capture
from engine.probes.inside import context_of
from engine.probes.rotary import kinds
from engine.probes.turning import cos_sin, turned

#: Where the key is put, and how far behind it the query stands; what the context does not hold is left out.
PLACES = (0, 1, 10, 100, 1000, 10_000)
DISTANCES = (0, 1, 2, 4, 8, 16, 32, 64, 128)


def relative_phase(
    conversation: Conversation, *, turn: int | None = None, position: int | None = None, layer: int = 0, head: int = 0
) -> RelativePhase:
    """The query of one head at `position` of a turn (None: the last one fed) and a key: a decode step up to its layer.

    Both are turned back to position 0 first. Raises `ExperimentError` for a turn, position, layer or head that is not
    there, `AnatomyError` for a model or a layer that does not turn its queries, or whose attention cannot be seen.
    """
    facts = conversation.loaded.facts
    check_head(facts, layer, head)
    turn, context = context_of(conversation, turn, position)
    parts = anatomy(conversation.loaded.model)
    kind = next((name for name, layers in kinds(parts).items() if layer in layers), None)
    here = len(context) - 1
    attended = capture(conversation, turn, context, layer, here)
    kv_head = head // (attended.query.shape[1] // attended.key.shape[1])
    back = 1 if attended.key.shape[2] > 1 else 0
    vectors = torch.stack([attended.query[0, head, -1], attended.key[0, kv_head, -1 - back]]).float()
    places = [place for place in PLACES if place + 1 < facts.context]
    distances = [distance for distance in DISTANCES if places[-1] + distance < facts.context]
    with torch.inference_mode():
        own = cos_sin(parts, kind, [here, here - back])
        plain = turned(parts, layer, vectors, *own, back=True)
        once_more = turned(parts, layer, plain, *own)
        keys = _at(parts, layer, kind, plain[1], places)
        queries = _at(parts, layer, kind, plain[0], [place + far for far in distances for place in places])
        queries = queries.view(len(distances), len(places), -1)
        scores = (queries * keys).sum(dim=-1).numpy(force=True)
        lengths = float(plain[0].norm() * plain[1].norm())
    means = scores.mean(axis=1)
    return RelativePhase(
        turn=turn,
        position=here,
        layer=layer,
        head=head,
        kv_head=kv_head,
        key_position=here - back,
        raw=float(vectors[0] @ vectors[1]),
        again=float(once_more[0] @ once_more[1]),
        lengths=lengths,
        places=np.array(places, np.int32),
        distances=np.array(distances, np.int32),
        scores=scores,
        within=float((scores.max(axis=1) - scores.min(axis=1)).max()),
        between=float(means.max() - means.min()),
    )


def _at(parts: Anatomy, layer: int, kind: str | None, vector: torch.Tensor, positions: list[int]) -> torch.Tensor:
    """One vector [head_dim] as it would be at n positions [n, head_dim]."""
    return turned(parts, layer, vector.expand(len(positions), -1), *cos_sin(parts, kind, positions))
