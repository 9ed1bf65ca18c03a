"""Where two runs part, and what each of them gave the other's tokens: from what their traces recorded."""

from dataclasses import dataclass

from engine.trace import Stepped, Trace


@dataclass(frozen=True)
class Parting:
    """The first place where two runs differ: a step of a turn, or a position of its context."""

    turn: int  # of ours
    their_turn: int
    step: int  # both have the same tokens before it; 0 where the contexts differ
    position: int | None  # of the first context id that differs; None where the contexts are the same


def parting(ours: Trace, theirs: Trace) -> Parting | None:
    """None where one run has nothing that the other does not have too."""
    last, their_last = ours.turns - 1, theirs.turns - 1
    if last < 0 or their_last < 0:
        return None
    if last != their_last and _contexts(ours, last, theirs, their_last) is None:
        # The same history, which one of them has as messages and the other has lived through.
        step = _steps(ours, last, theirs, their_last)
        return None if step is None else Parting(last, their_last, step, None)
    for turn in range(min(last, their_last) + 1):
        position, step = _contexts(ours, turn, theirs, turn), _steps(ours, turn, theirs, turn)
        if position is not None:
            return Parting(turn, turn, 0, position)
        if step is not None:
            return Parting(turn, turn, step, None)
    shorter = min(last, their_last)
    return None if last == their_last else Parting(shorter, shorter, len(ours.steps(shorter)), None)


def recorded(step: Stepped, token_id: int, stage: int = -1) -> float | None:
    """The probability after a stage that a step gave a token; None where the token was not followed."""
    for index, followed in enumerate(step.candidate_ids.tolist()):
        if followed == token_id:
            return float(step.probabilities[stage, index])
    return None


def _contexts(ours: Trace, turn: int, theirs: Trace, their_turn: int) -> int | None:
    first, second = ours.rendered(turn), theirs.rendered(their_turn)
    return _common(first.token_ids.tolist() if first else [], second.token_ids.tolist() if second else [])


def _steps(ours: Trace, turn: int, theirs: Trace, their_turn: int) -> int | None:
    return _common([one.token_id for one in ours.steps(turn)], [one.token_id for one in theirs.steps(their_turn)])


def _common(first: list[int], second: list[int]) -> int | None:
    """How many leading ids are the same; None where all are, and there are as many."""
    for index, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return index
    return None if len(first) == len(second) else min(len(first), len(second))
