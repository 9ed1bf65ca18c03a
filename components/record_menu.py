"""The record menu of the header: save the run to a file, and open one."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import gradio as gr

from components import download
from components.copy import words
from components.in_words import in_words
from components.recording import MAX_LOOKED
from components.telling import say_to
from components.units import bytes_text
from components.visit import Visit
from engine.experiment import ExperimentError
from engine.record import MAX_FILE_BYTES, Record, record_from_bytes, record_to_bytes


class Records(Protocol):
    """Who makes and shows records."""

    def record(self, visit: Visit, steps: str = "") -> Iterator[Record | None]: ...
    def play(self, visit: Visit, record: Record, *, made: int | None = None) -> None: ...
    def close_record(self, visit: Visit) -> None: ...
    def reopen(self, visit: Visit) -> None: ...


class RecordMenu:
    """Builds the menu inside the current Blocks; others may add to it inside `with menu.more:`."""

    def __init__(self) -> None:
        say = words("record")
        with gr.Accordion(say.text("menu"), open=False, elem_id="record-menu"):
            # Of any kind: gradio would refuse another in English, and with no word of what to open.
            self.open = gr.UploadButton(
                say.text("open"),
                type="binary",
                file_count="single",
                elem_id="record-open",
                size="sm",
            )
            gr.Markdown(say.text("open_help", size=MAX_FILE_BYTES / 1e6), elem_classes="panel-intro")
            self.steps = gr.Textbox(
                label=say.text("steps"), placeholder=say.text("steps_hint"), max_lines=1, elem_id="record-steps"
            )
            self.save = gr.Button(say.text("save"), elem_id="record-save", size="sm")
            gr.Markdown(say.text("steps_help", most=MAX_LOOKED), elem_classes="panel-intro")
            self.more = gr.Column(elem_id="record-more")
        self.sent = gr.Textbox(visible=False, label=say.text("menu"))

    def wire(
        self,
        desk: Records,
        visit: gr.State,
        feed: gr.HTML,
        show: Callable[[Visit], dict[str, Any]],
        refill: Callable[[Visit], list[Any]],
        form: list[Any],
        **options: Any,
    ) -> None:
        """`show` gives the feed's value, `refill` those of the form, `options` go to the heavy events."""

        def save(now: Visit, steps: str) -> Iterator[str]:
            for record in desk.record(now, steps):
                yield "" if record is None else _file(now, record)

        def opened(now: Visit, data: bytes | None) -> dict[str, Any]:
            if not download.busy(now, "open_after"):
                now.notice = now.said = ""
                try:
                    desk.play(now, record_from_bytes(data or b""))
                except ExperimentError as error:
                    now.notice = say_to(now, "record").text("refused", reason=in_words(error))
            return show(now)

        download.wire(self.save, save, [visit, self.steps], self.sent, feed, show, **options)
        light = options | {"concurrency_limit": None, "concurrency_id": None}
        self.open.upload(opened, [visit, self.open], feed, **options).then(refill, visit, form, **light)


def _file(visit: Visit, record: Record) -> str:
    """The file's name and its bytes as base64; "" where it is too large, which the visit's notice then says."""
    data, say = record_to_bytes(record), say_to(visit, "record")
    if len(data) > MAX_FILE_BYTES:
        visit.notice = say.text("too_large", size=len(data), most=MAX_FILE_BYTES)
        return ""
    visit.said = say.text("saved", answers=len(record.answers), size=bytes_text(len(data)))
    return download.to_send("record.json.gz", data)
