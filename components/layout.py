"""What stands on the page: header, rail, conversation at the left, the chosen station's panel at the right, footer."""

from collections.abc import Sequence

import gradio as gr

from components import relabel
from components.copy import words
from components.frame import BUTTONS
from components.header import Header
from components.lesson_player import strip
from components.message_field import MessageField
from components.panel_column import PanelColumn
from components.panels import PANELS
from components.settings_form import SettingsForm
from components.visit import Visit
from components.widgets import host, rail, token_strip
from engine.experiment import Experiment


class Layout:
    """Builds the components in the spoken language; no event is wired yet.

    `offered` are the models that may be chosen, as titles and ids.
    """

    def __init__(self, default: Experiment, model_title: str, offered: Sequence[tuple[str, str]] = ()) -> None:
        say = words("page")
        self.blocks: gr.Blocks
        with gr.Blocks(
            title="Decodescope", analytics_enabled=False, fill_width=True, delete_cache=(600, 600)
        ) as self.blocks:
            # First of all: gradio's page looks for what an event changes from the top of the tree, at every token.
            hidden = ("save-edit", "run-live", *(f"ask-{name}" for name in PANELS[0].CONTROLS.asks))
            self.feed = host.feed("feed", say.text("feed"), hidden=hidden, disabled=BUTTONS)
            self.names = relabel.build()
            self.visit = gr.State(Visit())
            host.widget("skip", "skip", say.text("skip"), {"to": "right"})
            self.header = Header(model_title, offered)
            self.rail = rail.build("rail", say.text("rail"))
            with gr.Row(elem_id="main"):
                with gr.Column(elem_id="left", elem_classes="pane"):
                    self._left(default)
                with gr.Column(elem_id="right", elem_classes="pane"):
                    self.lesson = strip.build()
                    self.panels = PanelColumn()
                    with gr.Row(elem_id="ways"):  # where all stands in one column, a long way up
                        host.widget("way", "way-note", say.text("up_note"), {"to": "lesson"})
                        host.widget("way", "way-rail", say.text("up_rail"), {"to": "rail"})
            rail.build("status", say.text("status"), variant="status")

    def _left(self, default: Experiment) -> None:
        say = words("page")
        gr.Markdown(f"## {say.text('conversation')}", elem_classes="panel-title")
        self.conversation = token_strip.build("conversation", say.text("conversation"))
        host.widget("heard", "heard", say.text("heard"), {"of": "conversation"})
        rail.build("notice", say.text("notice"), variant="status", live=True)
        self.message = MessageField()
        with gr.Row(elem_classes="go"):
            self.step = gr.Button(say.text("step"), elem_id="step")
            self.run = gr.Button(say.text("run"), elem_id="run", variant="primary")
            self.stop = gr.Button(say.text("stop"), elem_id="stop")
            self.back = gr.Button(say.text("back"), elem_id="back")
            self.new = gr.Button(say.text("new"), elem_id="new")
            self.edit = gr.Button(say.text("edit"), elem_id="edit")
            self.save_edit = gr.Button(say.text("save_edit"), elem_id="save-edit", variant="primary")
            self.run_live = gr.Button(words("record").text("run_live"), elem_id="run-live", variant="primary")
        gr.Markdown(f"## {say.text('timeline')}", elem_classes="panel-title")
        self.timeline = token_strip.build("timeline", say.text("timeline"))
        self.settings = SettingsForm(default)
        self.form = self.settings.build()
        # Hands for the keyboard: the arrow keys press these, Tab does not reach them.
        with gr.Row(elem_classes="keyboard-only"):
            self.left = gr.Button(say.text("left"), elem_id="move-left")
            self.right = gr.Button(say.text("right"), elem_id="move-right")
