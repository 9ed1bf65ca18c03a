"""Which message is edited, and the history up to it."""

from typing import Any

from components.compose import transcript
from components.copy import words
from components.panel import View
from engine.refusals import Refused


def message_to_edit(view: View) -> tuple[int, str]:
    """Index and text of the user message that is selected in the conversation, else of the newest one."""
    assert view.trace is not None
    messages = transcript(view.trace)
    own = [index for index, message in enumerate(messages) if message["role"] == "user"]
    if not own:  # an experiment from outside may hold none
        raise Refused(words("page").text("edit_gone"))
    index = _selected(view)
    if index not in own:
        index = own[-1]
    assert index is not None
    return index, messages[index]["content"]


def edited(view: View, index: int, text: str) -> list[dict[str, Any]]:
    """The messages up to `index`, which has a new text; what came after it is left out."""
    assert view.trace is not None
    messages = transcript(view.trace)
    if index >= len(messages):
        raise Refused(words("page").text("edit_gone"))
    return [*messages[:index], {"role": "user", "content": text}]


def _selected(view: View) -> int | None:
    rendered, position = view.rendered, view.cursor.position
    if rendered is None or position is None or position >= len(rendered.token_ids):
        return None
    span = int(rendered.span_index[position])
    return rendered.spans[span].message if span >= 0 else None
