"""The lessons on the page: a button in the header, the strip above the panel, and what a press of either does."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import gradio as gr

from components.choices import as_dict
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
    seen: Sequence[tuple[Callable[[Visit], list[Any]], Sequence[Any]]],
    **options: Any,
) -> None:
    """Wire both. `seen` are the functions that bring the page up to date, in turn, each with what it gives values to:
    the panel in sight first, then the form, whose settings may have changed with the run.
    """
    (show, shown), *later = seen

    def listed(visit: Visit) -> list[Any]:
        intents.list_lessons(visit)
        return show(visit)

    def pressed(visit: Visit, event: gr.EventData) -> list[Any]:
        intents.teach(visit, as_dict(event._data))
        return show(visit)

    opener.click(listed, visit, list(shown), **options)
    event = strip.select(pressed, visit, list(shown), trigger_mode="multiple", **options)
    for follow, parts in later:
        event = event.then(follow, visit, list(parts), **options)
