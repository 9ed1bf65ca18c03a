"""Traced decoding beside `generate`, plain and with every output flag.

Plain `generate` runs on the very model that the engine runs on, so that what is between them is the loop. Whoever sets
every output flag has the library alone: a model with its own attention and products (see `engine.linear`). What the
flags cost on the engine's products is reported beside it.

Timed are decode steps only, from the first new token to the last: the prefill is left out on all sides, and what a
step does beside the model weighs the most. The sides take turns in one process with the same prompt, settings, seed
and number of threads. Rates are medians over the rounds.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
from transformers.generation.streamers import BaseStreamer

from benchmarks.figures import Figure
from benchmarks.prompts import SETTINGS, experiment_of, prompt_of
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.linear import Linear
from engine.model import LoadedModel
from engine.trace import Stepped

EVERY_OUTPUT = {
    "return_dict_in_generate": True,
    "output_attentions": True,
    "output_hidden_states": True,
    "output_scores": True,
    "output_logits": True,
}

#: Bars by context length: over plain `generate`, and over `generate` with every output flag on the library alone.
BARS = {64: (0.95, 1.1), 512: (0.95, 1.3)}


@dataclass(frozen=True)
class Decoded:
    """One run: the new ids, and the seconds from the first of them to the last."""

    ids: tuple[int, ...]
    seconds: float

    @property
    def step_seconds(self) -> float:
        return self.seconds / (len(self.ids) - 1)


class Stamps(BaseStreamer):
    """Notes when `generate` hands over each token; the first it hands over is the prompt."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:  # noqa: ARG002 - the name is transformers'
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass


def traced(loaded: LoadedModel, experiment: Experiment) -> Decoded:
    """The engine's own loop with everything recorded."""
    conversation = Conversation(loaded, experiment)
    conversation.advance()
    times = []
    while not conversation.finished:
        conversation.advance()
        times.append(time.perf_counter())
    steps: tuple[Stepped, ...] = conversation.trace.steps(0)
    return Decoded(tuple(step.token_id for step in steps), times[-1] - times[0])


def generated(model: Any, prompt_ids: torch.Tensor, experiment: Experiment, **outputs: bool) -> Decoded:
    """`generate` on ids [1, n] with the experiment's settings. The process's random state is left as it was."""
    stamps = Stamps()
    new_tokens = experiment.stop.max_new_tokens
    with torch.random.fork_rng():
        torch.manual_seed(experiment.sampling.seed)
        result = model.generate(
            prompt_ids,
            attention_mask=torch.ones_like(prompt_ids),
            do_sample=True,
            **SETTINGS,
            min_new_tokens=new_tokens,
            max_new_tokens=new_tokens,
            pad_token_id=0,
            streamer=stamps,
            **outputs,
        )
    ids = (result.sequences if outputs else result)[0, prompt_ids.shape[1] :].tolist()
    return Decoded(tuple(ids), stamps.times[-1] - stamps.times[1])


def library_model(model: Any, attention: str, *, own_products: bool = False) -> Any:
    """The model on the same weights with an attention of the library, and with its products unless `own_products`."""
    copied = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    copied.set_attn_implementation(attention)
    for module in copied.modules():
        if type(module) is Linear and not own_products:
            module.__class__ = torch.nn.Linear  # type: ignore[assignment]
    return copied


def in_turn(rounds: int, **sides: Callable[[], float]) -> dict[str, float]:
    """The median of each side over `rounds` rounds in which the sides take turns, after one round that is not counted.

    Every other round goes backwards, so that no side always follows the same one.
    """
    values: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name in list(sides)[:: 1 if number % 2 else -1]:
            value = sides[name]()
            if number:
                values[name].append(value)
    return {name: median(found) for name, found in values.items()}


def measure(
    loaded: LoadedModel, *, contexts: tuple[int, ...] = (64, 512), new_tokens: int = 24, rounds: int = 7
) -> list[Figure]:
    """Speed over both kinds of `generate` at each context.

    Raises:
        RuntimeError: plain `generate` drew other tokens than the engine, so that the two did not do the same work.
    """
    plain, flags = loaded.model, EVERY_OUTPUT
    sides = {
        "generate": (plain, {}),
        "generate, library alone": (library_model(plain, "sdpa"), {}),
        "generate with all outputs, library alone": (library_model(plain, "eager"), flags),
        "generate with all outputs": (library_model(plain, "eager", own_products=True), flags),
    }
    figures = []
    for context in contexts:
        prompt = prompt_of(loaded.tokenizer, context)
        experiment = experiment_of(loaded.facts.model_id, prompt, new_tokens)
        ids = torch.tensor([loaded.tokenizer.encode(prompt, add_special_tokens=False)], device=loaded.device)
        if traced(loaded, experiment).ids != generated(loaded.model, ids, experiment).ids:
            raise RuntimeError("the engine and generate drew different tokens; there is nothing to compare")
        runs = {
            name: partial(_step_seconds, generated, model, ids, experiment, **outputs)
            for name, (model, outputs) in sides.items()
        }
        seconds = in_turn(rounds, traced=partial(_step_seconds, traced, loaded, experiment), **runs)
        bars = dict(zip(("generate", "generate with all outputs, library alone"), BARS.get(context, ()), strict=False))
        figures += [
            Figure(
                f"traced decode / {name}, context {context}",
                seconds[name] / seconds["traced"],
                "×",
                bars.get(name),
                "at least",
                f"{_rate(seconds['traced'])} / {_rate(seconds[name])} tokens/s",
            )
            for name in sides
        ]
    return figures


def _rate(seconds: float) -> str:
    return f"{1 / seconds:.1f}"


def _step_seconds(run: Callable[..., Decoded], *arguments: Any, **outputs: bool) -> float:
    return run(*arguments, **outputs).step_seconds
