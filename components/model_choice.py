"""The model in the header: a choice where more than one is offered, else its name."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import gradio as gr

from components import lanes
from components.copy import words
from components.settings_form import SettingsForm

if TYPE_CHECKING:
    from components.intents import Intents
    from components.visit import Visit


def build(title: str, offered: Sequence[tuple[str, str]]) -> gr.Dropdown | gr.Textbox:
    """Inside the header: `offered` are titles and ids, the first is the one that is loaded."""
    label = words("page").text("model")
    if len(offered) < 2:
        return gr.Textbox(title, label=label, interactive=False, max_lines=1, elem_id="model")
    return gr.Dropdown(list(offered), value=offered[0][1], label=label, filterable=False, elem_id="model")


def wire(
    choice: gr.Dropdown | gr.Textbox,
    visit: gr.State,
    settings: SettingsForm,
    intents: "Intents",
    shown: tuple[gr.HTML, Callable[["Visit"], dict[str, Any]]],
    restored: tuple[Callable[["Visit"], list[Any]], list[Any]],
    **options: Any,
) -> None:
    """Choosing a model; nothing where there is no choice.

    `shown` is the feed and what gives its value; `restored` gives the values of form and tabs, and names them: they
    are those of the new conversation, which a link may have waited for.
    """
    if not isinstance(choice, gr.Dropdown):
        return
    feed, frame = shown
    each: dict[str, Any] = {**options, "trigger_mode": "multiple"}

    def choose(visit: "Visit", model_id: Any, values: Sequence[Any]) -> Iterator[list[Any]]:
        """The choice comes from the browser, so it may be anything."""
        for _ in intents.choose_model(visit, str(model_id)[:200], settings.read(values)):
            yield [gr.skip(), frame(visit)]
        yield [intents.model_of(visit), frame(visit)]

    restore, parts = restored
    settings.pressed(choice.input).then(
        choose,
        [visit, choice, settings.values],
        [choice, feed],
        **each,
        **lanes.LOADING,
    ).then(restore, visit, parts, concurrency_limit=None, **each)


def follow(
    choice: gr.Dropdown | gr.Textbox, visit: gr.State, intents: "Intents", event: gr.events.Dependency, **options: Any
) -> None:
    """After `event` the choice shows the model that the visit is on: a link, a record or a session that was put away
    may have brought another.
    """
    if isinstance(choice, gr.Dropdown):
        event.then(intents.model_of, visit, choice, **options)
