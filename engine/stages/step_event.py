"""What a step leaves in the trace, as far as it is known before its text is."""

from collections.abc import Mapping, Sequence

from engine.stages.candidates import best_eos, follow
from engine.stages.snapshots import Snapshot
from engine.stages.vocabulary import Vocabulary
from engine.trace import Draw, Shape, Stepped


def step_event(
    snapshots: Sequence[Snapshot],
    words: Vocabulary,
    eos_ids: Sequence[int],
    *,
    turn: int,
    step: int,
    position: int,
    token_id: int,
    drawn: Draw | None,
    forced: bool,
    shapes: Mapping[str, Shape],
    kv_tokens: int,
    kv_bytes: int,
    seconds: float,
) -> Stepped:
    """The token that was chosen among the best of the first and of the last stage, followed through all of them."""
    eos = best_eos(snapshots, eos_ids)
    always = {token_id} | ({eos.token_id} if eos else set()) | ({drawn.drawn_id} if drawn else set())
    candidates = follow(snapshots, sorted(always))
    return Stepped(
        turn=turn,
        step=step,
        position=position,
        token_id=token_id,
        piece=words.piece(token_id),
        token_bytes=words.bytes(token_id),
        special=words.is_special(token_id),
        forced=forced,
        shapes=dict(shapes),
        stages=tuple(snapshot.stage for snapshot in snapshots),
        candidate_ids=candidates.ids,
        candidate_bytes=tuple(words.bytes(token) for token in candidates.ids.tolist()),
        logits=candidates.logits,
        probabilities=candidates.probabilities,
        draw=drawn,
        eos=eos,
        kv_tokens=kv_tokens,
        kv_bytes=kv_bytes,
        seconds=seconds,
        overhead_seconds=0.0,
        text="",
        held_bytes=0,
    )
