"""The button that copies a link, and what the page does when it was opened by one."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import gradio as gr

from components.copy import words
from components.settings_form import SettingsForm
from components.visit import Visit
from components.widgets import host

#: The parameter of the page's address that holds a link's text.
PARAMETER = "run"

#: Each link is copied once, also where it is the same again.
_numbers = count(1)

Link = Callable[[Visit, str, dict[str, Any]], None]


def build() -> tuple[gr.Button, gr.HTML]:
    """The button, and beside it the place that says how long the link is or shows what could not be copied."""
    say = words("sharing")
    button = gr.Button(say.text("link"), elem_id="link", size="sm")
    return button, host.widget("sharing", "link-said", say.text("address"), parameter=PARAMETER)


def wire(
    button: gr.Button, said: gr.HTML, link: Link, settings: SettingsForm, visit: gr.State, message: gr.Textbox,
    feed: gr.HTML, redraw: Callable[[Visit], dict[str, Any]], **options: Any,
) -> None:  # fmt: skip
    """Where no link could be made the page is shown anew: its session may have been put away, and another opened."""

    def make(visit: Visit, message: str, values: Sequence[Any]) -> dict[str, Any]:
        link(visit, message, settings.read(values))
        problem, visit.notice = visit.notice, ""
        say = words("sharing")
        return {
            "number": next(_numbers),
            "text": visit.shared,
            "copied": say.text("copied"),
            "by_hand": say.text("by_hand"),
            "problem": problem,
        }

    def shown(visit: Visit) -> Any:
        return gr.skip() if visit.shared else redraw(visit)

    made = settings.pressed(button.click).then(make, [visit, message, settings.values], said, **options)
    made.then(shown, visit, feed, **options)


def text_in_address(request: gr.Request) -> str:
    """The link's text that the page was opened with, "" where there is none."""
    return str(request.query_params.get(PARAMETER, ""))
