"""The button that makes the HTML page of a run, or of the record in sight, in the record menu."""

from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from components import download
from components.copy import words
from components.export.of_record import html_page
from components.record_menu import RecordMenu, Records
from components.telling import say_to, telling
from components.units import bytes_text
from components.visit import Visit
from engine.record import Record


class PageButton:
    """Adds itself to the menu, and takes the steps whose inside is wanted from its field."""

    def __init__(self, menu: RecordMenu) -> None:
        say = words("record_page")
        self.menu = menu
        with menu.more:
            self.button = gr.Button(say.text("button"), elem_id="record-page", size="sm")
            gr.Markdown(say.text("button_help"), elem_classes="panel-intro")

    def wire(
        self,
        desk: Records,
        visit: gr.State,
        feed: gr.HTML,
        show: Callable[[Visit], dict[str, Any]],
        **options: Any,
    ) -> None:
        """`show` gives the feed's value, `options` go to the event."""

        def make(now: Visit, steps: str) -> Iterator[str]:
            for record in _records(desk, now, steps):
                if record is None:
                    yield ""
                    continue
                now.said = say_to(now, "record_page").text("making")
                yield ""
                file = ""
                with telling(desk, now):  # a file may come from anybody
                    file = _file(now, record)
                yield file

        # A page takes seconds of the processor: one at a time, so that runs go on.
        alone = options | {"concurrency_limit": 1, "concurrency_id": "export"}
        download.wire(self.button, make, [visit, self.menu.steps], self.menu.sent, feed, show, **alone)


def _records(desk: Records, visit: Visit, steps: str) -> Iterator[Record | None]:
    """The record in sight as it is; else one that is made of the run, with None while it is."""
    if visit.playing is not None:
        yield visit.playing.playback.record
        return
    yield from desk.record(visit, steps)


def _file(visit: Visit, record: Record) -> str:
    """The file's name and its bytes as base64."""
    data = html_page(record, visit.language).encode("utf-8")
    visit.said = say_to(visit, "record_page").text("made", size=bytes_text(len(data)))
    return download.to_send("html", data)
