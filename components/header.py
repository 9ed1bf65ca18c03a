"""The top row of the page: the model, the lessons, the link, the record menu and the language."""

from collections.abc import Sequence

import gradio as gr

from components import language, model_choice
from components.export.button import PageButton
from components.lesson_player import wiring
from components.record_menu import RecordMenu
from components.sharing import button as sharing


class Header:
    """Builds the row inside the current Blocks; what is wired to events is in its fields.

    `offered` are the models that may be chosen, as titles and ids.
    """

    def __init__(self, model_title: str, offered: Sequence[tuple[str, str]]) -> None:
        with gr.Row(elem_id="header"):
            gr.Markdown("# Decodescope", elem_id="title")
            self.model = model_choice.build(model_title, offered)
            self.lessons = wiring.button()
            self.link, self.said = sharing.build()
            self.records = RecordMenu()
            self.page_button = PageButton(self.records)
            self.language = language.build()
