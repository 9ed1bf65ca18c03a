"""The labels of the page in another language: buttons, titles, intros, fields and their choices.

The page is laid out once a language when the program starts, and what differs between two of them is what a switch
changes. So no panel keeps a list of its labels, and a page in the first language costs nothing for the others.
"""

from collections.abc import Mapping
from typing import Any

import gradio as gr
from gradio.blocks import Block

from components.choices import as_dict
from components.copy import DEFAULT, LANGUAGES
from components.widgets import host

#: What of a component is words. The value of a field belongs to the person.
WORDS = ("label", "placeholder", "info", "choices")
SAYS_ITS_VALUE = (gr.Markdown, gr.Button)


class Labels:
    """What to change in `blocks` for each language, and the event that changes it.

    `others` are layouts of the same page in the further languages: the same components in the same order.
    """

    def __init__(self, blocks: gr.Blocks, others: Mapping[str, gr.Blocks]) -> None:
        said = {DEFAULT: blocks, **others}
        kinds = {language: [type(block) for block in _blocks(layout)] for language, layout in said.items()}
        if any(kinds[language] != kinds[DEFAULT] for language in others):
            raise ValueError("a layout in another language has other components")
        columns = zip(*(_blocks(layout) for layout in said.values()), strict=True)
        changing = [column for column in columns if any(_words(one) != _words(column[0]) for one in column)]
        rows = dict(zip(said, zip(*changing, strict=True), strict=True)) if changing else {}
        ours = rows.get(DEFAULT, ())
        self.components = [block for block in ours if not isinstance(block, gr.HTML)]
        self._texts = {
            language: [_words(block) for block in row if not isinstance(block, gr.HTML)]
            for language, row in rows.items()
        }
        self._names = {
            language: {str(block.elem_id): str(block.label) for block in row if isinstance(block, gr.HTML)}
            for language, row in rows.items()
        }

    def updates(self, language: str) -> list[Any]:
        """One update for each of `components`, and the value of the widget that names the others."""
        return [
            *(gr.update(**text) for text in self._texts[language]),
            {"names": self._names[language]},
        ]


def build() -> gr.HTML:
    """The widget that tells the custom views what they are called."""
    return host.widget("names", "names", "")


def wire(feed: gr.HTML, labels: Labels, names: gr.HTML, switch: gr.Radio, **options: Any) -> None:
    """The feed asks for the labels of the language that it carries, where the page shows those of another."""

    def relabel(event: gr.EventData) -> list[Any]:
        asked = as_dict(event._data).get("language")
        language = asked if isinstance(asked, str) and asked in LANGUAGES else DEFAULT
        return [*labels.updates(language), language]

    # By itself gradio would drop a switch that comes before the one before it is done.
    feed.select(relabel, None, [*labels.components, names, switch], trigger_mode="multiple", **options)


def _blocks(layout: gr.Blocks) -> list[Block]:
    return list(layout.blocks.values())


def _words(block: Block) -> dict[str, Any]:
    """The words of a component, by the name of its property."""
    names = (*WORDS, "value") if isinstance(block, SAYS_ITS_VALUE) else WORDS
    return {name: getattr(block, name) for name in names if getattr(block, name, None)}
