"""What tools mean for one turn: whether a call is forced, when the answer stops at one, and after how many rounds."""

from dataclasses import dataclass
from typing import Any

from engine.dialogue import rounds_before
from engine.experiment import Experiment, Grammar
from engine.stages.vocabulary import Vocabulary
from engine.tools.calls import CLOSE, OPEN, goes_on, parse
from engine.tools.grammar import call_grammar
from engine.tools.registry import tools_named
from engine.trace import StopReason, Trace

MAX_ROUNDS = 8


@dataclass(frozen=True)
class Round:
    """A turn whose calls are run; `number` counts the rounds before it since the user's message."""

    number: int

    def ending(self, text: str, holds: dict[StopReason, dict[str, Any]]) -> tuple[StopReason, dict[str, Any]] | None:
        """The end of an answer that holds closed calls, else None.

        The answer ends at its closing mark where a grammar ends there. Where nothing forces the end, it goes on while
        another call may follow, and ends with the token that shows that none does: EOS, or any other text.
        """
        if CLOSE not in text:
            return None
        calls = parse(text)
        if not calls or (not holds and goes_on(text, calls[-1].end)):
            return None
        evidence: dict[str, Any] = {
            "calls": [{"name": call.name, "start": call.start, "end": call.end} for call in calls],
            "round": self.number,
            "also": [*holds],
        }
        if self.number >= MAX_ROUNDS:
            return "tool_limit", evidence | {"limit": "rounds", "rounds": MAX_ROUNDS}
        return "tool_call", evidence


def round_of(trace: Trace, turn: int) -> Round | None:
    """The turn as a round of calls; None where the experiment has no tools, or none may be called."""
    return Round(rounds_before(trace, turn)) if watched(trace.experiment) else None


def would_call(trace: Trace, turn: int) -> bool:
    """True where the answer so far holds calls that are run if it ends here."""
    calls = round_of(trace, turn)
    ending = calls.ending(trace.answer(turn), {"eos": {}}) if calls else None
    return ending is not None and ending[0] == "tool_call"


def watched(experiment: Experiment) -> bool:
    """True where calls in an answer are run."""
    return bool(experiment.tools) and experiment.tool_choice != "none"


def grammar_of(trace: Trace, turn: int, words: Vocabulary) -> Grammar | None:
    """The grammar that a turn is under: that of a forced call, or the experiment's own."""
    return call_grammar_of(trace, turn, words) or trace.experiment.grammar


def call_grammar_of(trace: Trace, turn: int, words: Vocabulary) -> Grammar | None:
    """The grammar that forces a call: in the first turn after a user's message, where one is required."""
    experiment = trace.experiment
    if not watched(experiment) or experiment.tool_choice != "required" or rounds_before(trace, turn):
        return None
    return call_grammar(tools_named(experiment.tools), mark_tokens=len(mark_ids(words)) == 2)


def mark_ids(words: Vocabulary) -> frozenset[int]:
    """Ids of the call marks, where the vocabulary has tokens of their own for them."""
    return frozenset(token_id for token_id, token in words.added.items() if token.content in (OPEN, CLOSE))
