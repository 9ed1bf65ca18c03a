"""A turn of a run before its prefill: whoever computes one, it is the round of tool calls that the trace makes it."""

from collections.abc import Sequence

import torch
from transformers import Cache

from engine.context.window import Window
from engine.decode import Turn
from engine.model import LoadedModel
from engine.stages.vocabulary import vocabulary
from engine.tools.rounds import call_grammar_of, round_of
from engine.trace import Trace


def new_turn(
    loaded: LoadedModel,
    trace: Trace,
    index: int,
    prompt_ids: Sequence[int],
    cache: Cache | None,
    generator: torch.Generator,
    window: Window | None,
) -> Turn:
    """Turn `index` of a run whose earlier turns are in `trace`. Raises `ExperimentError` as `Turn` does."""
    return Turn(
        loaded,
        trace.experiment,
        index,
        prompt_ids,
        cache,
        generator,
        window,
        calls=round_of(trace, index),
        forcing=call_grammar_of(trace, index, vocabulary(loaded.tokenizer)),
    )
