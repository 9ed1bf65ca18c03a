"""The right column: a tab for each panel, with its words, its buttons and fields, and its widgets."""

import gradio as gr

from components.copy import words
from components.panel import Panel
from components.panels import PANELS
from components.widgets import rail

#: What the fields of a grid hold at first: with them it has eight cells.
TEMPERATURES, SEEDS = "0, 0.7, 1.0, 1.3", "1, 2"


class PanelColumn:
    """Builds the column inside the current Blocks; what is wired to events is in its fields."""

    def __init__(self) -> None:
        self.parts: dict[str, list[gr.HTML]] = {}  # the widgets of each panel
        self.asks: list[tuple[gr.Button, str]] = []
        self.queries: list[tuple[gr.Textbox, str]] = []  # with the field of the cursor that gets the text
        self.grids: list[tuple[gr.Button, gr.Textbox, gr.Textbox]] = []  # with temperatures and seeds
        with gr.Tabs(elem_id="panels", selected=PANELS[0].STATION) as self.tabs:
            for panel in PANELS:
                say = words(panel.STATION)
                with gr.Tab(say.title, id=panel.STATION):
                    gr.Markdown(f"## {say.title}", elem_classes="panel-title")
                    gr.Markdown(say.intro, elem_classes="panel-intro")
                    rail.build(f"{panel.STATION}-reason", words("page").text("notice"), variant="status", live=True)
                    with gr.Column(elem_id=f"{panel.STATION}-body"):
                        self._controls(panel)
                        self.parts[panel.STATION] = panel.build()

    def _controls(self, panel: Panel) -> None:
        """The panel's own buttons and, where it looks up tokens, the field for their text."""
        say, controls = words(panel.STATION), panel.CONTROLS
        if not (controls.asks or controls.looks_up or controls.grid):
            return
        with gr.Row(elem_classes="tools"):
            for name in controls.asks:
                self.asks.append((gr.Button(say.text(f"ask_{name}"), elem_id=f"ask-{name}", size="sm"), name))
            if controls.looks_up:
                typed = gr.Textbox(
                    label=say.text("look_up"),
                    placeholder=say.text("look_up_hint"),
                    elem_id=f"{panel.STATION}-look-up",
                )
                self.queries.append((typed, controls.looks_up))
            if controls.grid:
                hot = gr.Textbox(TEMPERATURES, label=say.text("temperatures"), elem_id="grid-temperatures")
                lots = gr.Textbox(SEEDS, label=say.text("seeds"), elem_id="grid-seeds")
                self.grids.append((gr.Button(say.text("ask_grid"), elem_id="grid", size="sm"), hot, lots))
