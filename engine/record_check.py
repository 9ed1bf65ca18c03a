"""Whether a recorded answer fits its run and itself: sizes that go together, places that there are.

A size is a letter: L layers, R = L + 1 rows, H heads, V rows of the vocabulary; a small letter is one size within one
answer, whatever it is. A digit is itself.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from engine.answers.arithmetic import Arithmetic
from engine.answers.attention import AttentionAt, HeadFigures, Moves
from engine.answers.attention_matrix import AttentionMatrix
from engine.answers.chances import Chances
from engine.answers.distribution import Distribution
from engine.answers.embedding import Embedding
from engine.answers.feed_forward import FeedForward
from engine.answers.layer import LayerAt
from engine.answers.lens import Lens
from engine.answers.lens_map import LensMap
from engine.answers.norms import Norms
from engine.answers.padding import Padding, Tried
from engine.answers.positions import Positions
from engine.answers.relative_phase import RelativePhase
from engine.answers.residual import Residual
from engine.answers.rotary import Rotary, Turning
from engine.experiment import ExperimentError
from engine.facts import ModelFacts
from engine.said import said
from engine.trace import Trace

#: The sizes of arrays and lists, by the dataclass that has them.
SIZES: dict[type, dict[str, str]] = {
    Arithmetic: {"terms": "t", "token_ids": "k", "token_bytes": "k", "cosines": "k", "near_terms": "kt"},
    AttentionAt: {"weights": "Hm", "kinds": "LH"},
    HeadFigures: dict.fromkeys(("entropy", "evenness", "on_self", "on_first", "on_previous", "elsewhere"), "LH"),
    Moves: dict.fromkeys(("raw", "scaled", "masked", "hidden_by", "weights", "value_norms"), "m"),
    AttentionMatrix: {"weights": "nn", "outside": "n"},
    Chances: dict.fromkeys(("steps", "token_ids", "own", "probabilities"), "n"),
    Distribution: {"stages": "s", "token_ids": "c", "token_bytes": "c", "cut_by": "c"}
    | dict.fromkeys(("logits", "probabilities", "ranks"), "sc"),
    Embedding: dict.fromkeys(("neighbour_ids", "neighbour_bytes", "neighbour_cosines", "neighbour_norms"), "k")
    | dict.fromkeys(("positions", "position_bytes", "position_norms"), "n"),
    FeedForward: {"by_layer": "L", "curve_counts": "c", "curve_shares": "c"}
    | dict.fromkeys(("neuron_ids", "activations", "lengths", "pushes", "target_effects"), "k")
    | dict.fromkeys(("raised_ids", "raised", "lowered_ids", "lowered"), "kt"),
    LayerAt: {"stream": "L"},
    Lens: {"token_ids": "c", "token_bytes": "c"}
    | dict.fromkeys(("ranks", "logits", "probabilities"), "Rc")
    | dict.fromkeys(("top_ids", "top_bytes", "top_probabilities", "entropies"), "R"),
    LensMap: {"token_bytes": "n", "next_ids": "n"}
    | dict.fromkeys(("top_ids", "top_bytes", "top_probabilities", "next_ranks"), "Rn"),
    Norms: {"positions": "n", "token_bytes": "n", "stream": "Rn", "normed": "n"},
    Padding: {"alone_ids": "2", "alone_probabilities": "2"}
    | dict.fromkeys(("token_ids", "token_bytes", "attention_mask", "positions_by_mask", "positions_by_column"), "2w"),
    Tried: dict.fromkeys(("max_differences", "best_ids", "alone_probabilities"), "2"),
    Positions: {"curve": "n", "norms": "n", "places": "m", "cosines": "mm"},
    RelativePhase: {"places": "s", "distances": "d", "scores": "ds"},
    Residual: {"norms": "R", "cosines": "RR"}
    | dict.fromkeys(
        (
            *("attention_norms", "feed_forward_norms", "attention_cosines", "feed_forward_cosines"),
            *("attention_shares", "feed_forward_shares"),
        ),
        "L",
    ),
    Rotary: {"positions": "n"},
    Turning: {"frequencies": "c", "angles": "nc", "here": "c"},
}

#: Where the position that the model was told must be found.
AMONG: dict[type, str] = {Rotary: "positions", Positions: "places"}

#: Fields that count layers or heads, or name places of the turn.
LAYERS, HEADS, PLACES = ("layer",), ("head", "kv_head"), ("position", "key_position", "first", "last")


def check_answer(arguments: Mapping[str, Any], result: Any, trace: Trace, path: str) -> None:
    """Raise `ExperimentError` where the answer is of another run, of another question, or contradicts itself."""
    for name in ("turn", "layer", "head", "position", "step"):
        asked, told = arguments.get(name), getattr(result, name, None)
        if asked is not None and (type(asked) is not int or told not in (None, asked)):
            raise ExperimentError(f"{path}.arguments.{name}", said("other_question"))
    turn = getattr(result, "turn", 0)
    rendered = trace.rendered(turn)
    if rendered is None:
        raise ExperimentError(f"{path}.result.turn", said("run_turns", count=trace.turns))
    length = len(rendered.token_ids) + len(trace.steps(turn))
    _check(result, trace.facts, length, {}, f"{path}.result")


def _check(value: Any, facts: ModelFacts, length: int, sizes: dict[str, int], path: str) -> None:
    known = {"L": facts.layers, "R": facts.layers + 1, "H": facts.heads, "2": 2}
    for name, letters in SIZES.get(type(value), {}).items():
        held = getattr(value, name)
        found = list(held.shape) if isinstance(held, np.ndarray) else list(_lengths(held, len(letters)))
        if len(found) != len(letters):
            raise ExperimentError(f"{path}.{name}", said("axes_wanted", count=len(letters)))
        for letter, size in zip(letters, found, strict=True):
            wanted = known.get(letter, sizes.setdefault(letter, size))
            if size != wanted:
                raise ExperimentError(f"{path}.{name}", said("entries_wanted", count=wanted, got=size))
    if getattr(value, "layer_count", facts.layers) != facts.layers:
        raise ExperimentError(f"{path}.layer_count", said("model_layers", count=facts.layers))
    for names, count in ((LAYERS, facts.layers), (HEADS, facts.heads), (PLACES, length)):
        for name in names:
            number = getattr(value, name, None)
            if number is not None and not 0 <= number < count:
                raise ExperimentError(f"{path}.{name}", said("none_among", got=number, count=count))
    among = AMONG.get(type(value))
    if among is not None and value.told not in getattr(value, among):
        raise ExperimentError(f"{path}.{among}", said("told_not_among", told=value.told))
    for item in dataclasses.fields(value):
        held = getattr(value, item.name)
        inside = [held] if dataclasses.is_dataclass(held) else held if isinstance(held, tuple) else ()
        # Parts of one kind in a list have sizes of their own; what they share with the whole is a letter of both.
        for index, part in enumerate(inside):
            if dataclasses.is_dataclass(part):
                _check(part, facts, length, dict(sizes), f"{path}.{item.name}[{index}]")


def _lengths(held: Any, axes: int) -> Iterator[int]:
    """The size of each axis of nested tuples; −1 where an axis has rows of several sizes."""
    rows = [held]
    for _ in range(axes):
        sizes = {len(row) for row in rows}
        yield sizes.pop() if len(sizes) == 1 else -1
        rows = [item for row in rows for item in row] if axes > 1 else rows
