"""The lessons on the page: a button in the header, the strip above the panel, and what a press of either does."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gradio as gr
from gradio.events import Dependency

from components.copy import words
from components.visit import Visit


class Teaches(Protocol):
    """The intents of the lesson strip."""

    def list_lessons(self, visit: Visit) -> None: ...
    def teach(self, visit: Visit, wanted: dict[str, Any]) -> None: ...


def button() -> gr.Button:
    """The header's button that opens the list of lessons."""
    return gr.Button(words("lesson").text("open"), elem_id="lessons", size="sm")


def wire(
    opener: gr.Button,
    strip: gr.HTML,
    visit: gr.State,
    intents: Teaches,
    show: Callable[[Visit], list[Any]],
    shown: Sequence[Any],
    **options: Any,
) -> list[Dependency]:
    """Wire both; `show` gives the values of `shown`: the panel's tab and all in sight. Returns the events that may
    have brought other settings, which the form is to follow.
    """

    def listed(visit: Visit) -> list[Any]:
        intents.list_lessons(visit)
        return show(visit)

    def pressed(visit: Visit, event: gr.EventData) -> list[Any]:
        intents.teach(visit, event._data if isinstance(event._data, dict) else {})
        return show(visit)

    opener.click(listed, visit, list(shown), **options)
    return [strip.select(pressed, visit, list(shown), trigger_mode="multiple", **options)]
