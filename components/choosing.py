"""Choosing another model: loaded in the background, it then begins a new conversation with the first question."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from components.compose import compose, first_question, uses_template, without_ids
from components.copy import speak, words
from components.desk_part import DeskPart
from components.telling import telling
from components.units import bytes_text
from components.visit import Visit
from engine.experiment import Experiment

if TYPE_CHECKING:
    from engine.loading.progress import Progress
    from engine.models_at_hand import Held, ModelsAtHand

#: Seconds between two looks at how far a model has come.
LOOK_EVERY = 0.4


class Choosing(DeskPart):
    """The part of the desk that waits for models; `hand` is None where there is only the one of the runtime."""

    hand: "ModelsAtHand | None"
    default: Experiment

    def model_of(self, visit: Visit) -> str:
        """The id of the model that the visit is on, or will be on once that is here."""
        if self.hand is not None and not self.ready:
            return self.hand.started
        return self.runtime.facts_of(visit.session_id).model_id

    def waiting(self, visit: Visit) -> Iterator[str]:
        """How far the first model has come, in the visit's language, each time either changes, until it is here."""
        if self.hand is None:
            if not self.ready:
                speak(visit.language)
                yield words("page").text("loading")
            return
        held = self.hand.begin(self.hand.started)
        for progress in _changes(held, visit):
            speak(visit.language)  # each step of a generator may be in another context
            yield loading_text(held.entry.title, progress)

    def choose_model(self, visit: Visit, model_id: str, form: dict[str, Any]) -> Iterator[None]:
        """Load the model where it is not here, and begin anew on it; yields when there is more to tell.

        Meanwhile the visit goes on as it was. Of two models chosen one after the other the later one counts.
        """
        visit.wanted = model_id
        with telling(self, visit):
            now = self.runtime.facts_of(visit.session_id).model_id
            if self.hand is None or model_id == now:
                visit.loading = ""
                return
            held = self.hand.begin(model_id)
            for progress in _changes(held, visit):
                if visit.wanted != model_id:
                    return
                speak(visit.language)
                visit.loading = loading_text(held.entry.title, progress)
                yield
            if visit.wanted != model_id:
                return
            visit.loading = ""
            facts = held.runtime.facts
            pending, visit.pending = visit.pending, None
            if pending is not None and pending.experiment.model == model_id and not self._own_words(visit):
                self.open_link(visit, pending)
                return
            before = self.runtime.facts_of(visit.session_id)
            template = uses_template(facts, before, asked=form["use_template"])
            shown = self._trace(visit).experiment
            asked = [{"role": "user", "content": first_question(shown)}]
            kept = without_ids(form) | {"use_template": template}
            composed = compose(kept, shown=shown, model=model_id, messages=asked)
            experiment = self.runtime.parse(composed)
            visit.leave_grid()
            self._start(visit, experiment)
            visit.refill = True
        if visit.wanted == model_id:
            visit.loading = ""

    def _own_words(self, visit: Visit) -> bool:
        """True where a conversation of the person's own is in sight, which no link takes away."""
        trace = self.view(visit).trace
        if trace is None:
            return False
        now, before = ((one.messages, one.prompt, one.follow_ups) for one in (trace.experiment, self.default))
        return now != before


def _changes(held: "Held", visit: Visit) -> "Iterator[Progress]":
    """How far a model on its way has come, each time that or the visit's language changes, until it is decided."""
    seen = None
    while not held.wait(LOOK_EVERY):
        now = held.progress, visit.language
        if now != seen:
            yield now[0]
        seen = now


def loading_text(title: str, progress: "Progress") -> str:
    """How far a model has come, in one sentence."""
    say = words("page")
    if progress.stage == "downloading" and progress.total:
        done, total = bytes_text(progress.done), bytes_text(progress.total)
        return say.text("loading_downloading", title=title, done=done, total=total)
    stage = "waiting" if progress.stage == "downloading" else progress.stage  # until the total is known
    return say.text(f"loading_{stage}", title=title)
