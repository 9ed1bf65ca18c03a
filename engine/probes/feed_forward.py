"""The feed-forward at one position as a key–value memory: which neurons fire, and which tokens each of them pushes.

A neuron is a column of the down projection. What it adds to the stream is its activation, the number that the down
projection multiplies, times that column (Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories").
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import linear

from engine.anatomy import anatomy
from engine.answers.feed_forward import FeedForward, Sparsity
from engine.conversation import Conversation
from engine.limits import no_such
from engine.probes.contributions import LinearNorm, linear_norm
from engine.probes.inside import Inside, context_of, inside
from engine.probes.lens import next_token
from engine.probes.neurons import Fired, down_projection, firing, lengths
from engine.stages.vocabulary import vocabulary
from engine.trace import Floats

#: Neurons that are read through the unembedding, and tokens kept of each on either side.
NEURONS = 12
TOKENS = 5
#: A neuron counts as clearly active where its push is at least this share of the strongest one's.
CLEAR = 0.1
#: Points of the curve of what the strongest neurons carry.
POINTS = 48


@dataclass(frozen=True, eq=False)
class Path:
    """From a feed-forward straight to the logits: the norm after it (few families), the final norm, the head."""

    after: LinearNorm | None
    final: LinearNorm
    head: torch.Tensor  # [vocab, hidden]
    scale: float  # of the logits, and of what a block adds to the stream

    def direction(self, token_id: int) -> torch.Tensor:
        """[hidden] float32 whose product with a vector that the feed-forward gives is its effect on a token's logit."""
        found = self.final.direction(self.head[token_id])
        found = found if self.after is None else self.after.direction(found)
        return found.float().to(self.head.device) * self.scale

    def effects(self, vectors: torch.Tensor) -> torch.Tensor:
        """Effects [k, vocab] float32 of vectors [k, hidden] on every logit."""
        for norm in (self.after, self.final):
            if norm is not None:
                vectors = norm.gain * (vectors - vectors.mean(dim=-1, keepdim=True) if norm.centres else vectors)
        return linear(vectors.to(self.head.dtype), self.head).float() * self.scale


def feed_forward(
    conversation: Conversation, *, turn: int | None = None, position: int | None = None, layer: int = 0
) -> FeedForward:
    """The feed-forward of `layer` at `position` of a turn (None: the last one fed), in one decode step.

    Beside it a product of NEURONS columns with the output head. Raises `ExperimentError` for a turn, position or layer
    that is not there, `AnatomyError` for a layer without a list of neurons (a mixture of experts).
    """
    loaded = conversation.loaded
    if not 0 <= layer < loaded.facts.layers:
        raise no_such("layer", loaded.facts.layers, layer)
    turn, context = context_of(conversation, turn, position)
    following = next_token(conversation, turn, len(context))
    down_projection(anatomy(loaded.model).blocks[layer])  # says why, where there is none
    with firing(loaded.model) as layers:
        found = inside(conversation, turn=turn, position=len(context) - 1)
    target = int(found.logits.argmax()) if following is None else following
    with torch.inference_mode():
        return _told(conversation, turn, layer, found, layers, target, following is not None)


def _told(
    conversation: Conversation,
    turn: int,
    layer: int,
    found: Inside,
    layers: dict[int, Fired],
    target: int,
    target_chosen: bool,
) -> FeedForward:
    fired, path, columns = layers[layer], _path(found, layers[layer], layer), layers[layer].columns
    by_layer = [
        _sparsity(layers[index]) if index in layers else None for index in range(conversation.loaded.facts.layers)
    ]
    pushes = _pushes(fired)
    order = pushes.argsort(descending=True, stable=True)
    best = order[:NEURONS]
    written = fired.activations[best, None] * columns[best]
    effects = path.effects(written)
    raised, lowered = (effects.topk(TOKENS, largest=largest) for largest in (True, False))
    shown = {*raised.indices.flatten().tolist(), *lowered.indices.flatten().tolist()}
    direction = path.direction(target)
    on_target = fired.activations * (columns @ direction)
    mover = int(on_target.abs().argmax())
    # Neuron by neuron, not by the product that the model itself computes.
    total = (fired.activations[:, None] * columns).sum(dim=0) + (0 if fired.bias is None else fired.bias)
    counts = np.unique(np.geomspace(1, len(order), POINTS).round().astype(np.int32))
    words = vocabulary(conversation.loaded.tokenizer)
    return FeedForward(
        turn=turn,
        position=found.position,
        layer=layer,
        by_layer=tuple(by_layer),
        neuron_ids=best.int().numpy(force=True),
        activations=fired.activations[best].numpy(force=True),
        lengths=lengths(fired.projection)[best].numpy(force=True),
        pushes=pushes[best].numpy(force=True),
        raised_ids=raised.indices.int().numpy(force=True),
        raised=raised.values.numpy(force=True),
        lowered_ids=lowered.indices.int().numpy(force=True),
        lowered=lowered.values.numpy(force=True),
        token_bytes={token: words.bytes(token) for token in shown},
        curve_counts=counts,
        curve_shares=_carried(pushes)[counts - 1],
        target_id=target,
        target_bytes=words.bytes(target),
        target_chosen=target_chosen,
        target_effects=on_target[best].numpy(force=True),
        target_total=_whole(path, fired, on_target, target),
        mover_id=mover,
        mover_effect=float(on_target[mover]),
        mover_rank=int((order == mover).nonzero()[0, 0]) + 1,
        output_norm=float(fired.output.norm()),
        has_bias=fired.bias is not None,
        max_difference=float((total - fired.output).abs().max()),
    )


def _path(found: Inside, fired: Fired, layer: int) -> Path:
    parts = found.parts
    after = parts.blocks[layer].after_feed_forward
    dtype = found.stream.dtype
    weight: torch.Tensor = parts.head.weight  # type: ignore[assignment]  # an output head is a linear map
    return Path(
        after=None if after is None else linear_norm(after, fired.output.to(dtype)),
        final=linear_norm(parts.final_norm, found.stream[-1]),
        head=weight,
        scale=parts.logit_scale * parts.blocks[layer].multiplier,
    )


def _whole(path: Path, fired: Fired, on_target: torch.Tensor, target: int) -> float:
    """All neurons' effects and those of what is added whatever fires: the projection's bias and the norm's after it."""
    total = float(on_target.cpu().double().sum())
    if fired.bias is not None:
        total += float(fired.bias @ path.direction(target))
    if path.after is not None:
        total += float(path.after.bias.cpu().double() @ path.final.direction(path.head[target])) * path.scale
    return total


def _pushes(fired: Fired) -> torch.Tensor:
    """|activation| × length of the column, [F]."""
    return fired.activations.abs() * lengths(fired.projection)


def _carried(pushes: torch.Tensor) -> Floats:
    """Share [F] of the sum of squared pushes that the 1, 2, … F strongest neurons carry; 0 where nothing fires."""
    squares = pushes.cpu().double().square().sort(descending=True).values.cumsum(0)
    shares: Floats = (squares / squares[-1].clamp(min=torch.finfo(squares.dtype).tiny)).float().numpy(force=True)
    return shares


def _sparsity(fired: Fired) -> Sparsity:
    pushes = _pushes(fired)
    strongest = float(pushes.max())
    return Sparsity(
        neurons=len(pushes),
        positive=int((fired.activations > 0).sum()),
        clear=int((pushes >= CLEAR * strongest).sum()) if strongest > 0 else 0,
        half=int(np.searchsorted(_carried(pushes), 0.5)) + 1 if strongest > 0 else 0,
    )
