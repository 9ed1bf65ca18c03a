"""What a person says on the page: a message leaves its field for a run, comes back where refused, or is edited."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr

from components.frame import live
from components.intents import Intents
from components.layout import Layout
from components.message_field import back, sent
from components.telling import say_to
from components.visit import Visit


class Saying(Layout, ABC):
    """The part of the page that takes messages; what it shows is the page's own."""

    intents: Intents

    @abstractmethod
    def frame(self, visit: Visit, before: dict[str, Any] | None = None) -> dict[str, Any]: ...

    def _with_form(self, intent: Callable[[Visit, str, dict[str, Any]], bool]) -> Callable[..., list[Any]]:
        def handle(visit: Visit, message: str, values: Sequence[Any]) -> list[Any]:
            taken = intent(visit, message, self.settings.read(values))
            return [sent(message) | back(self._draft(visit)) if taken else {}, self.frame(visit)]

        return handle

    def _take(self, visit: Visit, message: str) -> list[Any]:
        """The typed message leaves its field before the run, which may last; none does while one goes on or waits."""
        if not visit.session_id:  # the page is not open yet, or was left alone: the message would be lost
            return [{}, gr.skip()]
        if visit.running or visit.typed:
            visit.notice, visit.turned_away = say_to(visit).text("answer_first"), visit.turned_away + 1
            return [{}, self.frame(visit)]
        visit.typed = message
        return [sent(message), gr.skip()]

    def _run(self, visit: Visit, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
        if visit.turned_away and not visit.typed:  # what it was refused for may have ended by now
            visit.turned_away -= 1
            yield self.frame(visit)
            return
        form = self.settings.read(values)
        message, visit.typed = visit.typed, ""
        if visit.running:  # two presses were taken before either had begun
            visit.notice, visit.returned = say_to(visit).text("answer_first"), message or visit.returned
            yield self.frame(visit)
            return
        visit.running, taken = True, False
        try:
            for value in live(lambda *before: self.frame(visit, *before), self.intents.run(visit, message, form)):
                taken = True
                yield value
        finally:  # also where a frame fails or the page closes: Run must not stay disabled
            visit.running = False
            # The notice cannot tell whether the message was refused: another event may have changed it meanwhile.
            if not taken:  # an empty one beside it, of a second press, takes no message away
                visit.returned = message or visit.returned
            elif visit.notice == say_to(visit).text("answer_first"):
                visit.notice = ""
        yield self.frame(visit)

    def _give_back(self, visit: Visit) -> dict[str, str]:
        """A message that was refused comes back into its field, or the draft that an edit had put aside."""
        refused, visit.returned = visit.returned, ""
        return back(refused or self._draft(visit))

    def _edit(self, visit: Visit, typed: str) -> list[Any]:
        """The text of a message goes into the field in the place of what is typed there, or out of it again."""
        before = visit.editing
        self.intents.edit(visit)
        if visit.editing == before:
            return [gr.skip(), self.frame(visit)]
        if visit.editing is None:
            return [self._draft(visit), self.frame(visit)]
        text, visit.returned, visit.draft = visit.returned, "", typed
        return [text, self.frame(visit)]

    def _draft(self, visit: Visit) -> str:
        """What an edit has put aside, once, when the edit is over."""
        if visit.editing is not None:
            return ""
        draft, visit.draft = visit.draft, ""
        return draft
