"""The field of a message: what was sent leaves it, what was refused comes back, what is typed meanwhile stays."""

import gradio as gr

from components.copy import words

#: What was typed since an event began is known to the browser alone, so the field is settled there; each answer once.
SETTLE = r"""(typed, settled) => {
  const left = typed === settled?.sent ? "" : typed;
  return [[settled?.back, left].filter((text) => text).join("\n"), null];
}"""


class MessageField:
    """`text` is the field. An event that sends from it answers with `sent`, `back` or {} for `settled`."""

    def __init__(self) -> None:
        say = words("page")
        self.text = gr.Textbox(
            placeholder=say.text("message"), lines=1, max_lines=6, show_label=False, elem_id="message",
            label=say.text("message_label"),
        )  # fmt: skip
        self.settled = gr.JSON(visible=False)

    def settle(self, event: gr.events.Dependency) -> gr.events.Dependency:
        """After `event`, which has filled `settled`."""
        both = [self.text, self.settled]
        settled: gr.events.Dependency = event.then(None, both, both, js=SETTLE, api_visibility="private")
        return settled


def sent(message: str) -> dict[str, str]:
    """This message was taken: it leaves the field, unless it was changed meanwhile."""
    return {"sent": message} if message else {}


def back(message: str) -> dict[str, str]:
    """This text had left the field: it comes back, before what was typed meanwhile."""
    return {"back": message} if message else {}
