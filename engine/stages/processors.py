"""The processor chain: transformers' own classes applied one at a time, with a snapshot after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    LogitsProcessor,
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoBadWordsLogitsProcessor,
    NoRepeatNGramLogitsProcessor,
    PreTrainedTokenizerFast,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from engine.experiment import Experiment, ExperimentError, ProcessorName
from engine.facts import ModelFacts
from engine.stages.grammar import GrammarProcessor
from engine.trace import Stage

#: −inf is clamped to this, so that 0 · −inf never arises: exp(−87) is about the least normal float32 and adds nothing
#: to a sum that holds a 1, while anything lower would be a (slow) denormal number.
_LOWEST = -87.0


class NoCandidate(Exception):
    """A link of the chain left no token to choose. `stage` is its name."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"{stage} left no token to choose")
        self.stage = stage


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The whole distribution after one stage."""

    stage: Stage
    logits: torch.Tensor  # [vocab] float32
    highest: float
    normaliser: float  # sum over the vocabulary of exp(logit − highest)

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        """Probabilities float32 of the given ids."""
        return torch.exp(self.logits[ids] - self.highest) / self.normaliser


@dataclass(frozen=True, eq=False)
class Link:
    """One processor of the chain; `describe` gives its parameters for the trace after it ran on ids [1, n]."""

    name: ProcessorName
    processor: LogitsProcessor
    describe: Callable[[torch.Tensor], dict[str, Any]]


class Chain:
    """The processors of one turn, in the experiment's order."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = tuple(links)

    def run(self, input_ids: torch.Tensor, logits: torch.Tensor) -> tuple[Snapshot, ...]:
        """Snapshots of the model's own logits and of each stage.

        `input_ids` [1, n] int64 is prompt and answer so far, `logits` [vocab] float32. Raises `NoCandidate` with the
        stage that emptied the set, and `ExperimentError` where a setting drives logits out of float32's range.
        """
        scores = logits[None]
        snapshots = [_snapshot("logits", {}, scores[0], None)]
        for link in self.links:
            scores = link.processor(input_ids, scores)
            snapshots.append(_snapshot(link.name, link.describe(input_ids), scores[0], snapshots[-1]))
        return tuple(snapshots)


def _snapshot(name: str, parameters: dict[str, Any], logits: torch.Tensor, before: Snapshot | None) -> Snapshot:
    """Measure a stage: tokens kept, entropy in nats, and the mass, as it stood before, of the tokens it cut."""
    highest = float(logits.max())
    if highest == -torch.inf:
        raise NoCandidate(name)
    if highest != highest or highest == torch.inf:
        if before is None:
            raise ExperimentError("model", "the model's logits are not finite numbers")
        raise ExperimentError(f"sampling.{name}", "this value drives the logits out of the range of float32")
    shifted = (logits - highest).clamp_(min=_LOWEST)
    weights = shifted.exp()
    normaliser = float(weights.sum())
    entropy = float(torch.log(weights.sum()) - torch.dot(weights, shifted) / normaliser)
    finite = logits > -torch.inf
    kept = int(torch.count_nonzero(finite))
    stage = Stage(
        name=name,
        parameters=parameters,
        kept=kept,
        entropy=max(0.0, entropy) if kept > 1 else 0.0,
        mass_removed=0.0 if before is None or kept == before.stage.kept else _mass(before, ~finite),
    )
    return Snapshot(stage, logits, highest, normaliser)


def _mass(snapshot: Snapshot, chosen: torch.Tensor) -> float:
    """Probability of the tokens that the flags [vocab] choose."""
    weights = torch.exp(snapshot.logits - snapshot.highest)
    return min(1.0, float(torch.dot(weights, chosen.float())) / snapshot.normaliser)


def bad_word_ids(tokenizer: PreTrainedTokenizerFast, words: Sequence[str]) -> list[list[int]]:
    """The id sequences that ban each word, with and without a leading space, as `generate` takes them.

    Only these two spellings are banned: the same letters cut into other tokens can still come out.
    """
    found: list[list[int]] = []
    for index, word in enumerate(words):
        base = word.removeprefix(" ")
        spellings = [ids for text in (base, f" {base}") if (ids := tokenizer.encode(text, add_special_tokens=False))]
        if not spellings:
            raise ExperimentError(f"sampling.bad_words[{index}]", f"{word!r} has no tokens in this vocabulary")
        found += [ids for ids in spellings if ids not in found]
    return found


def build_chain(
    experiment: Experiment,
    facts: ModelFacts,
    *,
    prompt_ids: Sequence[int],
    bad_words: list[list[int]],
    grammar: GrammarProcessor | None,
    device: torch.device,
) -> Chain:
    """The chain for a turn whose prompt is `prompt_ids`. A processor without effect by its value is left out.

    min_new_tokens and the like follow `generate`: no end-of-sequence id, no min_new_tokens.
    """
    settings = experiment.sampling
    prompt = frozenset(prompt_ids)
    length = len(prompt_ids)

    def repetition(input_ids: torch.Tensor) -> dict[str, Any]:
        answer = frozenset(input_ids[0, length:].tolist())
        return {
            "repetition_penalty": settings.repetition_penalty,
            "from_prompt": len(prompt),
            "from_answer_only": len(answer - prompt),
        }

    def link(name: ProcessorName) -> Link | None:
        match name:
            case "repetition_penalty":
                return Link(name, RepetitionPenaltyLogitsProcessor(settings.repetition_penalty), repetition)
            case "no_repeat_ngram_size":
                return plain(name, NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram_size))
            case "bad_words":
                parameters = {"words": list(settings.bad_words), "ids": bad_words}
                return Link(name, NoBadWordsLogitsProcessor(bad_words, list(facts.eos_ids)), lambda _: parameters)
            case "min_new_tokens":
                if not facts.eos_ids:
                    return None
                eos = torch.tensor(facts.eos_ids, device=device)
                return plain(name, MinNewTokensLengthLogitsProcessor(length, settings.min_new_tokens, eos))
            case "suppress_tokens":
                return plain(name, SuppressTokensLogitsProcessor(list(settings.suppress_tokens), device=str(device)))
            case "grammar":
                assert grammar is not None and experiment.grammar is not None
                kind, running = experiment.grammar.kind, grammar
                return Link(name, running, lambda _: {"kind": kind, "legal": running.legal})
            case "temperature":
                return plain(name, TemperatureLogitsWarper(settings.temperature))
            case "top_k":
                assert settings.top_k is not None
                return plain(name, TopKLogitsWarper(settings.top_k))
            case "top_p":
                assert settings.top_p is not None
                return plain(name, TopPLogitsWarper(settings.top_p))
            case "min_p":
                assert settings.min_p is not None
                return plain(name, MinPLogitsWarper(settings.min_p))
            case "typical_p":
                assert settings.typical_p is not None
                return plain(name, TypicalLogitsWarper(settings.typical_p))

    def plain(name: ProcessorName, processor: LogitsProcessor) -> Link:
        parameters = {name: getattr(settings, name)}
        return Link(name, processor, lambda _: parameters)

    return Chain([item for name in experiment.processors if (item := link(name)) is not None])
