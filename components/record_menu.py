"""The record menu of the header: save the run to a file, and open one. A file is made and sent without a disk."""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

import gradio as gr

from components.copy import words
from components.in_words import in_words
from components.telling import say_to
from components.units import bytes_text
from components.visit import Visit
from engine.experiment import ExperimentError
from engine.record import MAX_FILE_BYTES, Record, record_from_bytes, record_to_bytes

#: Hands a file that came as "name\nbase64" to the browser, as if a link to it had been followed.
DOWNLOAD = """(sent) => {
  const [name, data] = (sent || "").split("\\n");
  if (!data) return;
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const link = document.createElement("a");
  const type = name.endsWith(".html") ? "text/html" : "application/gzip";
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}"""


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
            self.open = gr.UploadButton(
                say.text("open"),
                type="binary",
                file_count="single",
                file_types=[".gz"],
                elem_id="record-open",
                size="sm",
            )
            gr.Markdown(say.text("open_help", size=MAX_FILE_BYTES / 1e6), elem_classes="panel-intro")
            self.steps = gr.Textbox(
                label=say.text("steps"), placeholder=say.text("steps_hint"), max_lines=1, elem_id="record-steps"
            )
            self.save = gr.Button(say.text("save"), elem_id="record-save", size="sm")
            gr.Markdown(say.text("steps_help"), elem_classes="panel-intro")
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

        def save(now: Visit, steps: str) -> Iterator[list[Any]]:
            if busy(now):
                yield ["", show(now)]
                return
            try:
                for record in desk.record(now, steps[:2_000]):
                    yield ["" if record is None else _file(now, record), show(now)]
            finally:  # also where the page closes
                now.keeping = False
            yield [gr.skip(), show(now)]

        def opened(now: Visit, data: bytes | None) -> dict[str, Any]:
            if not busy(now):
                now.notice = now.said = ""
                try:
                    desk.play(now, record_from_bytes(data or b""))
                except ExperimentError as error:
                    now.notice = say_to(now, "record").text("refused", reason=in_words(error))
            return show(now)

        saved = self.save.click(save, [visit, self.steps], [self.sent, feed], **options)
        light = options | {"concurrency_limit": None, "concurrency_id": None}
        saved.then(None, self.sent, None, js=DOWNLOAD, **light)
        self.open.upload(opened, [visit, self.open], feed, **options).then(refill, visit, form, **light)


def sent(extension: str, data: bytes) -> str:
    """A file as `DOWNLOAD` takes it: its name, told apart by the moment, and its bytes as base64."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"run-{moment}.{extension}\n{base64.b64encode(data).decode('ascii')}"


def busy(visit: Visit) -> bool:
    """True, and the notice says so, where a run or a record under way must end first."""
    if visit.running or visit.keeping:
        visit.notice = say_to(visit, "record").text("one_at_a_time")
        return True
    return False


def _file(visit: Visit, record: Record) -> str:
    """The file's name and its bytes as base64; "" where it is too large, which the visit's notice then says."""
    data, say = record_to_bytes(record), say_to(visit, "record")
    if len(data) > MAX_FILE_BYTES:
        visit.notice = say.text("too_large", size=len(data), most=MAX_FILE_BYTES)
        return ""
    visit.said = say.text("saved", answers=len(record.answers), size=bytes_text(len(data)))
    return sent("record.json.gz", data)
