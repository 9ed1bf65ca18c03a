"""A file made while the page watches, and handed to the browser: it never lies on a disk."""

import base64
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import gradio as gr

from components.telling import say_to
from components.visit import Visit

#: Makes a file for a visit and the steps whose inside is wanted: "" while it is being made, then what `to_send` gives.
Make = Callable[[Visit, str], Iterator[str]]

#: Of the field that names the steps.
MAX_CHARACTERS = 2_000

#: Hands a file that came as "name\nbase64" to the browser, as if a link to it had been followed.
_SAVE = """(sent) => {
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


def wire(
    button: gr.Button,
    make: Make,
    inputs: list[gr.components.Component],
    sent: gr.Textbox,
    feed: gr.HTML,
    show: Callable[[Visit], dict[str, Any]],
    **options: Any,
) -> None:
    """The button makes a file of `inputs`, the visit and the steps; `show` gives the feed's value meanwhile."""

    def handle(now: Visit, steps: str) -> Iterator[list[Any]]:
        if busy(now):
            yield ["", show(now)]
            return
        now.keeping = True
        yield ["", gr.skip()]  # what was sent before must not be sent again
        try:
            for file in make(now, steps[:MAX_CHARACTERS]):
                yield [file, show(now)]
        finally:  # also where the page closes
            now.keeping = False
        yield [gr.skip(), show(now)]

    light = options | {"concurrency_limit": None, "concurrency_id": None}
    button.click(handle, inputs, [sent, feed], **options).then(None, sent, None, js=_SAVE, **light)


def to_send(extension: str, data: bytes) -> str:
    """A file as the browser takes it: its name, told apart by the moment, and its bytes as base64."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"run-{moment}.{extension}\n{base64.b64encode(data).decode('ascii')}"


def busy(visit: Visit, said: str = "one_at_a_time") -> bool:
    """True, and the notice says so, where a run or a record under way must end first; `said` are the words for it."""
    if visit.running or visit.keeping:
        visit.notice = say_to(visit, "record").text(said)
        return True
    return False
