"""Self-check: does the loop draw the very tokens that transformers' `generate` draws?"""

import time

import torch
from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList, StopStringCriteria
from transformers.generation.stopping_criteria import STOP_STRING_EMBEDDING_CACHE

from engine.answers.parity import Parity
from engine.conversation import Conversation
from engine.decode import Turn
from engine.experiment import Experiment, Grammar
from engine.facts import ModelFacts
from engine.kv_cache import common_prefix
from engine.model import LoadedModel
from engine.said import Said, said
from engine.stages.grammar import GrammarProcessor
from engine.stages.processors import bad_word_ids
from engine.stages.vocabulary import vocabulary
from engine.tools.rounds import grammar_of

MAX_TOKENS = 64
#: Of all stop strings together: the table that `generate` makes of them and the vocabulary grows with their bytes.
MAX_STOP_BYTES = 200


def parity(conversation: Conversation) -> Parity:
    """Run `generate` on the current turn's prompt ids, settings and random state.

    As many tokens are compared as were made, at most `MAX_TOKENS`: `generate` cannot pause for other visitors.
    """
    turn = conversation.turn
    reason = _reason_against(conversation, turn)
    if reason is not None or turn is None:
        return Parity(reason, turn=max(conversation.trace.turns - 1, 0))
    ours = tuple(turn.answer[:MAX_TOKENS])
    started = time.perf_counter()
    theirs = generate_ids(
        conversation.loaded,
        conversation.experiment,
        prompt_ids=turn.prompt_ids,
        new_tokens=len(ours),
        random_state=turn.random_state(0),
        grammar=grammar_of(conversation.trace, turn.index, vocabulary(conversation.loaded.tokenizer)),
    )
    same = common_prefix(ours, theirs)
    return Parity(
        reason=None,
        ours=ours,
        theirs=theirs,
        first_difference=None if same == len(ours) == len(theirs) else same,
        seconds=time.perf_counter() - started,
        turn=turn.index,
    )


def _reason_against(conversation: Conversation, turn: Turn | None) -> Said | None:
    experiment = conversation.experiment
    if turn is None and conversation.trace.turns:
        return said("parity_recorded")
    if turn is None or not turn.answer:
        return said("parity_no_token")
    if experiment.sampling.order != "transformers":
        return said("parity_order")
    if turn.window is not None and (turn.window.before or turn.gone):
        return said("parity_window")
    if len("".join(experiment.stop.stop_strings).encode()) > MAX_STOP_BYTES:
        return said("parity_stops", limit=MAX_STOP_BYTES)
    if any(item.turn == turn.index and item.step < len(turn.answer) for item in experiment.forced):
        return said("parity_chosen")
    return None


def generate_ids(
    loaded: LoadedModel,
    experiment: Experiment,
    *,
    prompt_ids: tuple[int, ...],
    new_tokens: int,
    random_state: torch.Tensor,
    grammar: Grammar | None = None,
) -> tuple[int, ...]:
    """The ids that `generate` samples after `prompt_ids`, at most `new_tokens`.

    `random_state` is that of the run's generator before the first draw. The global generator that `generate` draws
    from is put back afterwards, and so are the settings that come with the model.
    """
    device, own = loaded.device, loaded.model.generation_config
    ids = torch.tensor([list(prompt_ids)], dtype=torch.long, device=device)
    processors = LogitsProcessorList()
    if grammar is not None:
        processors.append(
            GrammarProcessor(grammar, loaded.tokenizer, eos_ids=loaded.facts.eos_ids, prompt_length=len(prompt_ids))
        )
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device], device_type=_forked(device)):
        if device.type == "cpu":
            torch.set_rng_state(random_state)
        else:
            torch.get_device_module(device).set_rng_state(random_state, device)
        loaded.model.generation_config = GenerationConfig()  # generate takes from it whatever the given one leaves open
        try:
            output = loaded.model.generate(  # type: ignore[operator]  # transformers leaves the mixin untyped
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=generation_config(experiment, loaded, new_tokens),
                logits_processor=processors,
                stopping_criteria=_stopping(experiment, loaded),
            )
        finally:
            loaded.model.generation_config = own
    return tuple(output[0, len(prompt_ids) :].tolist())


def _stopping(experiment: Experiment, loaded: LoadedModel) -> StoppingCriteriaList:
    strings = list(experiment.stop.stop_strings)
    try:
        return StoppingCriteriaList([StopStringCriteria(loaded.tokenizer, strings)] if strings else [])
    except ValueError:  # no token holds the last character of any of them: none can ever be complete
        return StoppingCriteriaList()
    finally:
        STOP_STRING_EMBEDDING_CACHE.clear()  # the tables of eight such calls would stay otherwise


def _forked(device: torch.device) -> str:
    return "cuda" if device.type == "cpu" else device.type


def generation_config(experiment: Experiment, loaded: LoadedModel, new_tokens: int) -> GenerationConfig:
    """The experiment's settings in the words of `generate`; every default that it would put in is named and off."""
    facts: ModelFacts = loaded.facts
    sampling = experiment.sampling
    eos_ids = list(facts.eos_ids) or None
    settings = {
        "max_new_tokens": new_tokens,
        "min_new_tokens": min(sampling.min_new_tokens, new_tokens) or None,
        "do_sample": not sampling.greedy,
        "repetition_penalty": sampling.repetition_penalty,
        "no_repeat_ngram_size": sampling.no_repeat_ngram_size,
        "bad_words_ids": bad_word_ids(loaded.tokenizer, sampling.bad_words) or None,
        "suppress_tokens": list(sampling.suppress_tokens) or None,
        "eos_token_id": eos_ids,
        "pad_token_id": eos_ids[0] if eos_ids else None,
    }
    if not sampling.greedy:
        settings |= {
            "temperature": sampling.temperature,
            "top_k": sampling.top_k or 0,
            "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
            "min_p": sampling.min_p or None,
            "typical_p": 1.0 if sampling.typical_p is None else sampling.typical_p,
        }
    return GenerationConfig(**settings)
