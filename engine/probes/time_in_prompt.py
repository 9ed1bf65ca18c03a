"""What a time of day in the system prompt does to reuse: put first it breaks everything after it, put last little."""

from collections.abc import Sequence
from typing import Literal

from engine.answers.time_in_prompt import TimeCase, TimeInPrompt
from engine.conversation import Conversation
from engine.experiment import ExperimentError, Message
from engine.kv_cache import common_prefix
from engine.model import LoadedModel
from engine.said import said
from engine.stages.template import TemplateError, render
from engine.stages.tokens import tokenise

#: Asked a minute apart.
TIMES = ("It is 09:41.", "It is 09:42.")
#: Stands in where the chat has no system prompt, or only a short one.
SYSTEM = (
    "You are a patient teacher. Answer in plain words and short sentences. Where you are not sure, say so. "
    "Never invent a source, a number or a name."
)


def time_in_prompt(conversation: Conversation) -> TimeInPrompt:
    """Both ways with the chat's own system prompt and first question; no forward is run.

    Raises `ExperimentError` for a raw prompt, and where the template takes no system prompt.
    """
    messages = conversation.experiment.messages
    if messages is None:
        raise ExperimentError("messages", said("raw_without_system"))
    system = next((message.content for message in messages if message.role == "system"), SYSTEM)
    rest = [message for message in messages if message.role != "system"]
    cases = tuple(_case(conversation.loaded, system, rest, place) for place in ("first", "last"))
    return TimeInPrompt(system, cases)


def _case(loaded: LoadedModel, system: str, rest: Sequence[Message], place: Literal["first", "last"]) -> TimeCase:
    contexts = []
    for time in TIMES:
        text = f"{time} {system}" if place == "first" else f"{system} {time}"
        try:
            rendered = render(loaded.tokenizer, [Message(role="system", content=text), *rest])
        except TemplateError as error:
            raise ExperimentError("messages", error.args[0]) from error
        tokens = tokenise(loaded.tokenizer, rendered.text, rendered.spans, templated=True, obey_marks=False)
        contexts.append((tokens.ids.tolist(), tokens.token_bytes))
    (old_ids, old), (new_ids, new) = contexts
    if old_ids == new_ids:
        raise ExperimentError("messages", said("time_left_out"))
    common = common_prefix(old_ids, new_ids)
    return TimeCase(
        place=place,
        positions=len(old_ids),
        common=common,
        shared=b"".join(old[max(0, common - 6) : common]),
        old=old[common],
        new=new[common],
    )
