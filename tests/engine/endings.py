"""Runs that end in every way that there is, by name, and runs with each mistake."""

import typing
from collections.abc import Callable

from engine.conversation import Conversation
from engine.experiment import Mistake
from engine.trace import Trace
from tests.engine.callers import SUM, caller
from tests.engine.callers import experiment as calling
from tests.engine.conversations import experiment, finish
from tests.engine.models import CONTEXT, tiny, tiny_tokenizer

LONG = {"role": "user", "content": "the cat sat " * CONTEXT}
MISTAKES: tuple[Mistake, ...] = typing.get_args(Mistake)


def _run(**fields: typing.Any) -> Trace:
    return finish(Conversation(tiny("llama"), experiment(**fields)))


def _saying(text: str, **fields: typing.Any) -> Trace:
    ids = [*tiny_tokenizer().encode(text, add_special_tokens=False), 2]
    return _run(forced=[{"turn": 0, "step": step, "token_id": id_} for step, id_ in enumerate(ids)], **fields)


def _cancelled(**evidence: object) -> Trace:
    conversation = Conversation(tiny("llama"), experiment())
    for _ in range(3):
        conversation.advance()
    conversation.cancel(**evidence)
    return conversation.trace


def _called(*, run: bool) -> Trace:
    """Cancelled after a call, before or after the tools ran."""
    conversation = Conversation(caller(), calling([SUM]))
    while conversation.advance()[-1].kind != ("tool_called" if run else "stopped"):
        pass
    conversation.cancel()
    return conversation.trace


def _gone_on() -> Trace:
    """Cancelled after the tools ran, and gone on."""
    conversation = Conversation(caller(), calling([SUM, "5"]))
    while conversation.advance()[-1].kind != "tool_called":
        pass
    conversation.cancel()
    return finish(conversation)


#: What each run is for, and the reasons of its ends in order.
ENDS: dict[str, tuple[Callable[[], Trace], list[str]]] = {
    "eos": (lambda: _saying("the cat"), ["eos"]),
    "max_new_tokens": (_run, ["length"]),
    "context": (lambda: _run(context={"max_tokens": 20}, stop={"max_new_tokens": 50}), ["length"]),
    "stop_string": (lambda: _saying("the cat", stop={"stop_strings": ["cat"]}), ["stop_string"]),
    "grammar_end": (lambda: _run(grammar={"kind": "regex", "source": "[0-9]{3}"}), ["grammar_end"]),
    "no_candidate": (
        lambda: _run(
            grammar={"kind": "regex", "source": "[0-9]{3}"},
            sampling={"suppress_tokens": tiny_tokenizer().convert_tokens_to_ids([*"0123456789"])},
        ),
        ["no_candidate"],
    ),
    "tool_call": (lambda: finish(Conversation(caller(), calling([SUM, "5"]))), ["tool_call", "eos"]),
    "tool_limit": (lambda: finish(Conversation(caller(), calling([SUM] * 9))), ["tool_call"] * 8 + ["tool_limit"]),
    "cancelled": (_cancelled, ["cancelled"]),
    "run_seconds": (lambda: _cancelled(limit="run_seconds", seconds=300.0), ["cancelled"]),
    "call_cancelled": (lambda: _called(run=False), ["tool_call", "cancelled"]),
    "result_cancelled": (lambda: _called(run=True), ["tool_call", "cancelled"]),
    "gone_on": (_gone_on, ["tool_call", "eos"]),
    "prompt_too_long": (lambda: _run(messages=[LONG]), ["error"]),
    "second_prompt_too_long": (lambda: _run(follow_ups=[LONG["content"]]), ["length", "error"]),
    "empty_prompt": (lambda: _run(prompt=""), ["error"]),
}


def mistaken(mistake: Mistake) -> Trace:
    return _run(mistake=mistake, follow_ups=["and the dog"])
