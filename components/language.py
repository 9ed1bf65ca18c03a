"""The switch of the header between the languages; the browser remembers what was chosen."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from components.copy import DEFAULT, LANGUAGES, words
from components.visit import Visit

#: What a page that opens asks its browser for: the language chosen before, else the one that the browser prefers.
REMEMBERED = "(visit) => [visit, decodescope.language()]"
REMEMBER = "(visit, language) => [visit, decodescope.language(language)]"


def build() -> gr.Radio:
    """The switch; each language stands there as it calls itself."""
    return gr.Radio(
        [(name, language) for language, name in LANGUAGES.items()],
        value=DEFAULT,
        label=words("page").text("language"),
        elem_id="language",
        container=False,
    )


def wire(
    switch: gr.Radio, visit: gr.State, feed: gr.HTML, frame: Callable[[Visit], dict[str, Any]], **options: Any
) -> None:
    """A choice changes the visit's language and what is in sight; the labels follow by themselves."""

    def choose(visit: Visit, language: str) -> dict[str, Any]:
        visit.language, visit.notice = language, ""
        return frame(visit)

    switch.input(choose, [visit, switch], feed, js=REMEMBER, **options)
