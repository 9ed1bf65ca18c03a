"""The model in the header: a choice where more than one is offered, else its name."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import gradio as gr

from components.copy import words

if TYPE_CHECKING:
    from components.page import Page
    from components.visit import Visit

#: Pages that may wait for a model at once, in lanes of their own: running conversations are not kept from the server.
LOADING_EVENTS = 4


def build(title: str, offered: Sequence[tuple[str, str]]) -> gr.Dropdown | gr.Textbox:
    """Inside the header: `offered` are titles and ids, the first is the one that is loaded."""
    label = words("page").text("model")
    if len(offered) < 2:
        return gr.Textbox(title, label=label, interactive=False, max_lines=1, elem_id="model")
    return gr.Dropdown(list(offered), value=offered[0][1], label=label, filterable=False, elem_id="model")


def wire(page: "Page") -> None:
    """Choosing a model; nothing where there is no choice."""
    if not isinstance(page.header.model, gr.Dropdown):
        return
    lanes: dict[str, Any] = {**page.quiet, "trigger_mode": "multiple"}

    def choose(visit: "Visit", model_id: Any, *values: Any) -> Iterator[list[Any]]:
        """The choice comes from the browser, so it may be anything."""
        form = dict(zip(page.form, values, strict=True))
        for _ in page.intents.choose_model(visit, str(model_id)[:200], form):
            yield [gr.skip(), page.frame(visit)]
        yield [page.intents.model_of(visit), page.frame(visit)]

    def restore(visit: "Visit") -> list[Any]:
        """Form and open tab are those of the new conversation, which a link may have waited for."""
        return page._restore(visit)

    asked = [page.visit, page.header.model, *page.form.values()]
    page.header.model.input(
        choose, asked, [page.header.model, page.feed], concurrency_limit=LOADING_EVENTS, concurrency_id="load", **lanes
    ).then(restore, page.visit, [page.panels.tabs, *page.form.values()], concurrency_limit=None, **lanes)


def follow(page: "Page", event: Any) -> None:
    """After `event` the choice shows the model that the visit is on: a link, a record or a session that was put away
    may have brought another.
    """
    if isinstance(page.header.model, gr.Dropdown):
        event.then(page.intents.model_of, page.visit, page.header.model, **page.quiet)
