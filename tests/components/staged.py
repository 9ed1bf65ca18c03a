"""Steps whose distribution went through named stages: probabilities, counts and ranks follow from the logits given."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from components.panel import View
from engine import numerics
from engine.trace import Draw, Stage, Stepped
from tests.distributions import entropy, log_softmax

from .handmade import VOCABULARY, make_experiment, make_facts, make_step, make_trace, make_view

#: A stage: its name, its parameters, the logits of the whole vocabulary after it.
Staged = tuple[str, dict[str, Any], np.ndarray]
CUT = -np.inf
VOCAB = 24


def staged_step(
    stages: Sequence[Staged], *, token: int, followed: int = 12, u_at: float = 0.25, **changes: Any
) -> Stepped:
    """Step 2 of a turn, followed as the engine follows it: the best of the first and last stage, the token taken.

    The draw falls on `token`, `u_at` of the way into its interval.
    """
    logits = np.stack([row for _, _, row in stages]).astype(np.float32)
    logp = np.array([log_softmax(row) for row in logits])
    probabilities = np.exp(logp)
    ids = sorted({token, *(int(i) for row in logits[[0, -1]] for i in numerics.top_k(row, followed))})
    ids.sort(key=lambda i: (-probabilities[-1, i], -logits[0, i], i))
    final = probabilities[-1]
    ahead = final[final > final[token]].sum() + final[:token][final[:token] == final[token]].sum()
    low, high = float(ahead), float(ahead + final[token])
    gone = np.isneginf(logits)
    fields: dict[str, Any] = {
        "stages": tuple(
            Stage(
                name,
                parameters,
                kept=int((~gone[i]).sum()),
                entropy=float(entropy(logp[i])),
                mass_removed=float(probabilities[i - 1][gone[i] & ~gone[i - 1]].sum()) if i else 0.0,
            )
            for i, (name, parameters, _) in enumerate(stages)
        ),
        "candidate_ids": np.array(ids, np.int32),
        "candidate_bytes": tuple(VOCABULARY.get(i, ("", f"<{i}>".encode()))[1] for i in ids),
        "logits": logits[:, ids],
        "probabilities": probabilities[:, ids].astype(np.float32),
        "draw": Draw(low + (high - low) * u_at, low, high, token, 0.7, ids[0], 1.1),
    }
    base = make_step(2, 21, token if token in VOCABULARY else 15, make_facts())
    return dataclasses.replace(base, token_id=token, **fields | changes)


def cut_below(logits: np.ndarray, kept: int) -> np.ndarray:
    """Only the `kept` best stay, as top-k does."""
    border = np.sort(logits)[-kept]
    return np.where(logits >= border, logits, CUT).astype(np.float32)


def random_logits(seed: int, scale: float = 3.0) -> np.ndarray:
    """Logits of the hand-made vocabulary."""
    return np.random.default_rng(seed).normal(0, scale, VOCAB).astype(np.float32)


def chain(seed: int = 0, kept: int = 5) -> list[Staged]:
    """Temperature 0.7, then top-k."""
    own = random_logits(seed)
    warm = own / np.float32(0.7)
    few = cut_below(warm, kept)
    return [("logits", {}, own), ("temperature", {"temperature": 0.7}, warm), ("top_k", {"top_k": kept}, few)]


def best(stages: Sequence[Staged]) -> int:
    return int(stages[-1][2].argmax())


def view_of(step: Stepped, *, experiment: Any = None, probe: Any = None, query: str = "") -> View:
    """A view whose selected step is `step`, with two plain steps before it."""
    trace = make_trace(answer=(15, 16), stop=False)
    trace = dataclasses.replace(trace, events=(*trace.events, step), experiment=experiment or make_experiment())
    return dataclasses.replace(make_view(trace, query=query), probe=probe)


def texts(figure: Any) -> list[str]:
    """The annotations of a figure."""
    return [note.text for note in figure.layout.annotations]
