"""What the tests of turns that call tools share: the model's words are put into its mouth by `forced`."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.tools.calls import CLOSE, OPEN
from engine.trace import ToolCalled, Trace
from tests.engine import conversations
from tests.engine.conversations import finish
from tests.engine.models import tiny, tiny_tokenizer

EOS = 2


def call(name: str = "calculator", **arguments: Any) -> str:
    return f"{OPEN}{json.dumps({'name': name, 'arguments': arguments})}{CLOSE}"


SUM = call(expression="2+3")


def caller() -> LoadedModel:
    """Its context is long enough for definitions, of which its tokenizer makes a token a character."""
    loaded = tiny("llama")
    return replace(loaded, facts=replace(loaded.facts, context=8_192))


def experiment(answers: Sequence[str], *, end: bool = True, **fields: Any) -> Experiment:
    """Each turn is made to say its answer, then EOS."""
    forced = [
        {"turn": turn, "step": step, "token_id": token_id}
        for turn, text in enumerate(answers)
        for step, token_id in enumerate([*tiny_tokenizer().encode(text, add_special_tokens=False), *[EOS] * end])
    ]
    given: dict[str, Any] = {"tools": ["calculator", "clock"], "stop": {"max_new_tokens": 250}, "forced": forced}
    return conversations.experiment(**given | fields)


def run(loaded: LoadedModel, answers: Sequence[str], **fields: Any) -> Trace:
    return finish(Conversation(loaded, experiment(answers, **fields)))


def reasons(trace: Trace) -> list[str]:
    return [stopped.reason for turn in range(trace.turns) if (stopped := trace.stopped(turn))]


def results(trace: Trace) -> list[str | None]:
    return [called.result or called.error for called in trace.of(ToolCalled)]
