"""A chat that is longer than its limit, and what a run makes of it."""

from typing import Any

from engine.conversation import Conversation
from engine.trace import Trace
from engine.truncated import Truncated
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

SYSTEM = {"role": "system", "content": "the cat"}


def said(*roles_and_texts: str) -> list[dict[str, str]]:
    """Messages by the first letter of their role: "u the cat", "a the mat"."""
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    return [{"role": names[text[0]], "content": text[2:]} for text in roles_and_texts]


#: Eight messages; each renders to 8 to 21 tokens of the tiny tokenizer.
CHAT = said("s the cat", "u one", "a two", "u three four", "a five", "u six seven", "a eight", "u nine ten")


def run(strategy: str, limit: int | None, *, model: str = "llama", **fields: Any) -> Trace:
    context = {"strategy": strategy, "max_tokens": limit, "positions": fields.pop("positions", "go_on")}
    return finish(Conversation(tiny(model), experiment(**{"messages": CHAT} | fields, context=context)))


def cut(trace: Trace, turn: int = 0) -> Truncated:
    found = trace.truncated(turn)
    assert found is not None
    return found


def tokens(messages: list[dict[str, str]]) -> int:
    """What transformers itself renders and counts, the generation prompt included."""
    encoding = tiny("llama").tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    return len(encoding["input_ids"])
