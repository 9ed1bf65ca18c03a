"""Attention at one position: every head of a layer, a map over all layers, and one head taken apart in five moves."""

import torch

from engine.answers.attention import AttentionAt, HiddenBy, Moves
from engine.attention import Attended, cap
from engine.conversation import Conversation
from engine.facts import ModelFacts
from engine.limits import no_such
from engine.probes.head_kinds import KINDS, kinds, measure, stack
from engine.probes.inside import attended_at


def attention(
    conversation: Conversation, *, turn: int | None = None, position: int | None = None, layer: int = 0, head: int = 0
) -> AttentionAt:
    """Everything at `position` (None: the last one fed) of a turn (None: the current), in one decode step.

    Raises `ExperimentError` for a turn, position, layer or head that is not there, `AnatomyError` for a model whose
    attention cannot be seen.
    """
    facts = conversation.loaded.facts
    check_head(facts, layer, head)
    here, attended = attended_at(conversation, turn=turn, position=position)
    turn = max(0, conversation.trace.turns - 1) if turn is None else turn
    weights = [attended[index].all_weights()[:, -1].numpy(force=True) for index in sorted(attended)]
    firsts = [here + 1 - row.shape[1] for row in weights]
    visible = [_visible(attended[index]) for index in sorted(attended)]
    figures = stack(
        [measure(row, first=first, visible=seen) for row, first, seen in zip(weights, firsts, visible, strict=True)]
    )
    names = kinds(figures)
    chosen = attended[layer]
    group = chosen.query.shape[1] // chosen.key.shape[1]
    kv_head = head // group
    rendered = conversation.trace.rendered(turn)
    total = (len(rendered.token_ids) if rendered else 0) + len(conversation.trace.steps(turn))
    return AttentionAt(
        turn=turn,
        position=here,
        layer=layer,
        head=head,
        first=firsts[layer],
        later=total - here - 1,
        weights=weights[layer],
        figures=figures,
        kinds=tuple(tuple(KINDS[index] for index in row) for row in names),
        moves=moves_of(chosen, head, window=_window(facts, layer)),
        kv_head=kv_head,
        group=tuple(range(kv_head * group, (kv_head + 1) * group)),
        window=_window(facts, layer),
    )


def moves_of(attended: Attended, head: int, *, window: int | None = None) -> Moves:
    """The five moves of one head for the newest position of `attended`."""
    with torch.inference_mode():
        raw = attended.scores(head)[-1]
        masked = attended.masked(head)[-1]
        weights = attended.weights(head)[-1]
        values = attended.value[0, head // (attended.query.shape[1] // attended.key.shape[1])].float()
        mixed = weights @ values
        last = len(raw) - 1
        hidden: list[HiddenBy | None] = [
            None if seen else "padding" if window is None or last - column < window else "window"
            for column, seen in enumerate((masked > -torch.inf).tolist())
        ]
        return Moves(
            raw=raw.numpy(force=True),
            scaled=cap(raw * attended.scaling, attended.softcap).numpy(force=True),
            masked=masked.numpy(force=True),
            hidden_by=tuple(hidden),
            weights=weights.numpy(force=True),
            value_norms=values.norm(dim=-1).numpy(force=True),
            mixed_norm=float(mixed.norm()),
            scaling=attended.scaling,
            softcap=attended.softcap,
        )


def check_head(facts: ModelFacts, layer: int, head: int) -> None:
    """Raise `ExperimentError` for a layer or head that the model does not have."""
    for name, value, count in (("layer", layer, facts.layers), ("head", head, facts.heads)):
        if not 0 <= value < count:
            raise no_such(name, count, value)


def _window(facts: ModelFacts, layer: int) -> int | None:
    return facts.sliding_window if facts.layer_kinds[layer] == "sliding" else None


def _visible(attended: Attended) -> int:
    """How many positions the newest one may see."""
    if attended.mask is None:
        return attended.key.shape[2]
    row = attended.mask[0, 0, -1]
    return int(row.sum() if row.dtype == torch.bool else (row > -torch.inf).sum())
