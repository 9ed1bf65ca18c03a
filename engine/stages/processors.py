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

from engine.experiment import Experiment, ExperimentError, Grammar, ProcessorName
from engine.facts import ModelFacts
from engine.limits import check_id
from engine.said import said
from engine.stages.grammar import GrammarProcessor
from engine.stages.snapshots import Snapshot, take_snapshot


@dataclass(frozen=True, eq=False)
class Link:
    """One processor of the chain; `describe` gives its parameters for the trace after it ran on ids [1, n]."""

    name: ProcessorName
    processor: LogitsProcessor
    describe: Callable[[torch.Tensor], dict[str, Any]]


class Chain:
    """The processors of one turn, in the experiment's order; `grammar` is the one that follows a grammar, if any."""

    def __init__(self, links: Sequence[Link], grammar: GrammarProcessor | None) -> None:
        self.links = tuple(links)
        self.grammar = grammar

    @torch.inference_mode()
    def run(self, input_ids: torch.Tensor, logits: torch.Tensor) -> tuple[Snapshot, ...]:
        """Snapshots of the model's own logits and of each stage.

        `input_ids` [1, n] int64 is prompt and answer so far, `logits` [vocab] float32. Raises `NoCandidate` with the
        stage that emptied the set, and `ExperimentError` where a setting drives logits out of float32's range.
        """
        scores = logits[None]
        snapshots = [take_snapshot("logits", {}, scores[0], None)]
        for link in self.links:
            scores = link.processor(input_ids, scores)
            snapshots.append(take_snapshot(link.name, link.describe(input_ids), scores[0], snapshots[-1]))
        return tuple(snapshots)


def bad_word_ids(tokenizer: PreTrainedTokenizerFast, words: Sequence[str]) -> list[list[int]]:
    """The id sequences that ban each word, with and without a leading space, as `generate` takes them.

    Only these two spellings are banned: the same letters cut into other tokens can still come out.
    """
    found: list[list[int]] = []
    for index, word in enumerate(words):
        base = word.removeprefix(" ")
        spellings = [ids for text in (base, f" {base}") if (ids := tokenizer.encode(text, add_special_tokens=False))]
        if not spellings:
            raise ExperimentError(f"sampling.bad_words[{index}]", said("word_without_tokens", word=word))
        found += [ids for ids in spellings if ids not in found]
    return found


def build_chain(
    experiment: Experiment,
    facts: ModelFacts,
    tokenizer: PreTrainedTokenizerFast,
    *,
    prompt_ids: Sequence[int],
    device: torch.device,
    forcing: Grammar | None = None,
) -> Chain:
    """The chain for a turn whose prompt is `prompt_ids`. A processor without effect by its value is left out.

    `forcing` is the grammar of a call that is forced; it takes the place of the experiment's own.

    As in `generate`, a model without an end-of-sequence id has no min_new_tokens. Raises `ExperimentError` for a
    grammar that does not compile, a bad word without tokens, and ids that the model has no row for.
    """
    settings = experiment.sampling
    prompt = frozenset(prompt_ids)
    length = len(prompt_ids)
    for index, token_id in enumerate(settings.suppress_tokens):
        check_id(token_id, facts, f"sampling.suppress_tokens[{index}]")
    bad_words = bad_word_ids(tokenizer, settings.bad_words)
    grammar, rules = forcing or experiment.grammar, None
    if grammar is not None:
        rules = GrammarProcessor(grammar, tokenizer, eos_ids=facts.eos_ids, prompt_length=length)

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
                assert grammar is not None and rules is not None
                kind, running = grammar.kind, rules
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
        parameters: dict[str, Any] = {name: getattr(settings, name)}
        return Link(name, processor, lambda _: parameters)

    asked = {*experiment.processors, *(["grammar"] if rules else [])}
    return Chain([item for name in settings.order_names if name in asked and (item := link(name)) is not None], rules)
