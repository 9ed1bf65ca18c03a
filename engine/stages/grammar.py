"""A grammar as a link of the chain: every token that cannot continue it gets −inf.

Grammars are compiled and followed by llguidance (JSON schema, regular expression, Lark with its extensions).
"""

import weakref
from collections.abc import Callable, Sequence

import llguidance
import llguidance.hf
import llguidance.numpy
import numpy as np
import numpy.typing as npt
import torch
from transformers import LogitsProcessor, PreTrainedTokenizerFast

from engine.experiment import ExperimentError, Grammar
from engine.said import said

_SOURCES: dict[str, Callable[[str], str]] = {
    "json_schema": llguidance.LLMatcher.grammar_from_json_schema,
    "regex": llguidance.LLMatcher.grammar_from_regex,
    "lark": llguidance.LLMatcher.grammar_from_lark,
}

#: Characters that are shown of a compiler's message.
MAX_ERROR = 400

#: Wrapping a tokenizer takes a third of a second: done once for each.
_wrapped: weakref.WeakKeyDictionary[PreTrainedTokenizerFast, llguidance.LLTokenizer] = weakref.WeakKeyDictionary()


def _wrap(tokenizer: PreTrainedTokenizerFast, eos_ids: Sequence[int]) -> llguidance.LLTokenizer:
    if tokenizer not in _wrapped:
        _wrapped[tokenizer] = llguidance.hf.from_tokenizer(tokenizer, eos_token=list(eos_ids) or None)
    return _wrapped[tokenizer]


def _bounded(error: str) -> str:
    """The compiler's message, which may quote the whole grammar."""
    return error if len(error) <= MAX_ERROR else f"{error[:MAX_ERROR]}…"


class GrammarProcessor(LogitsProcessor):
    """Masks what the grammar forbids after the tokens that were sampled since the prompt.

    The state follows from the ids it is shown, so going back, branching, and use inside `generate` need no call of
    their own. An end-of-sequence token is never fed to the grammar: it ends it.
    """

    def __init__(
        self, grammar: Grammar, tokenizer: PreTrainedTokenizerFast, *, eos_ids: Sequence[int], prompt_length: int
    ) -> None:
        """Compile the grammar. Raises `ExperimentError("grammar.source", …)` with the compiler's message."""
        self.prompt_length = prompt_length
        self._eos_ids = frozenset(eos_ids)
        self._tokenizer = _wrap(tokenizer, eos_ids)
        self._start = llguidance.LLMatcher(self._tokenizer, _SOURCES[grammar.kind](grammar.source), log_level=0)
        if self._start.is_error():
            error = _bounded(self._start.get_error().strip())
            raise ExperimentError("grammar.source", said("grammar_does_not_compile", error=error))
        self._matcher = self._start.deep_copy()
        self._consumed: list[int] = []
        self.legal = 0  # tokens the grammar allows, at the latest call

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [1, vocab] with −inf where the grammar forbids; `input_ids` [1, n] holds prompt and answer."""
        allowed = self.allowed(input_ids[0, self.prompt_length :].tolist())
        self.legal = int(allowed.sum())
        forbidden = torch.ones(scores.shape[-1], dtype=torch.bool)
        width = min(len(allowed), scores.shape[-1])
        forbidden[:width] = torch.from_numpy(~allowed[:width])
        return scores.masked_fill(forbidden.to(scores.device), -torch.inf)

    def allowed(self, answer: Sequence[int]) -> npt.NDArray[np.bool_]:
        """One flag a token of the tokenizer: may it follow the answer so far?"""
        self._follow(answer)
        mask = llguidance.numpy.allocate_token_bitmask(1, self._tokenizer.vocab_size)
        llguidance.numpy.fill_next_token_bitmask(self._matcher, mask)
        if self._matcher.is_error():
            # What follows the first line is the parser's own state.
            error = _bounded(self._matcher.get_error().strip().partition("\n")[0])
            raise ExperimentError("grammar.source", said("grammar_not_followed", error=error))
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        return bits[: self._tokenizer.vocab_size].astype(np.bool_)

    def allows(self, answer: Sequence[int], token_id: int) -> bool:
        """May this token follow the answer? An end-of-sequence token may always: it ends the turn."""
        self._follow(answer)
        return token_id in self._eos_ids or bool(self._matcher.validate_tokens([token_id]))

    def check(self, answer: Sequence[int], token_id: int, path: str) -> None:
        """Raise `ExperimentError` for a token that may not follow."""
        if not self.allows(answer, token_id):
            raise ExperimentError(path, said("grammar_forbids", token=token_id))

    def ended(self, answer: Sequence[int]) -> bool:
        """True when the answer is complete and nothing but an end-of-sequence token may follow."""
        self._follow(answer)
        return bool(self._matcher.is_stopped() and self._matcher.is_accepting())

    def _follow(self, answer: Sequence[int]) -> None:
        """Bring the matcher to the state after `answer`."""
        told = [token for token in answer if token not in self._eos_ids]
        known = len(self._consumed)
        if told[:known] != self._consumed:
            self._matcher, self._consumed, known = self._start.deep_copy(), [], 0
        if len(told) > known and not self._matcher.consume_tokens(told[known:]):
            raise ExperimentError("grammar.source", said("grammar_left"))
        self._consumed = told
