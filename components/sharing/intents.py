"""Links out and in: the run in sight becomes one, and one becomes the run that waits for Run."""

from typing import Any

from components.compose import TOOLS
from components.copy import LANGUAGES, speak, words
from components.desk_part import DeskPart
from components.sharing.place import land, look, looked_at
from components.telling import telling
from components.visit import Visit
from engine.experiment import Experiment
from engine.link import Link, link_from_text, link_to_text
from engine.playback import NoModel
from engine.refusals import Refused


class Sharing(DeskPart):
    """The part of the desk that makes and opens links; how a run goes on is the desk's own."""

    default: Experiment

    def link(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """Leave in `visit.shared` the text of a link to what Run would run, with the settings and the message as they
        stand, and to what is looked at; where there can be none, the notice says why.
        """
        visit.shared = ""
        with telling(self, visit):
            found, view = self.next_run(visit, message, form), self.view(visit)
            place = looked_at(view, visit, another_run=found.anew or found.says)
            visit.shared = link_to_text(Link(experiment=found.experiment, **place))

    def opened(self, visit: Visit, text: str) -> bool:
        """Open a link's text on a new page; False where it cannot be, and the notice says why."""
        with telling(self, visit):
            models = {*self.runtime.offered, *self.runtime.catalog.loadable_ids}
            link = link_from_text(text, models=models, tools=TOOLS)
            if link.language in LANGUAGES:
                visit.language = link.language
                speak(visit.language)
            if link.lesson is None:
                visit.session_id = self.runtime.open(visit.session_id or None)
                self.open_link(visit, link)
            else:
                if self.with_model:
                    self.reopen(visit)  # what is there once the lesson is closed
                self.open_lesson(visit, link.lesson, link.note or 0)
                if visit.playing and link.station is not None:  # else the note's own place is meant
                    visit.link = link
                    view = self.view(visit)
                    look(view, visit, link)
                    land(visit, view.trace)
                    visit.link = None  # beyond what the note shows
        return not visit.notice

    def open_link(self, visit: Visit, link: Link) -> None:
        """The link's experiment takes the place of the run, the form follows; no forward is run before a person asks.

        Raises `Refused` or `ExperimentError`, and then all is as it was.
        """
        wanted, offered = link.experiment.model, self.runtime.offered
        if wanted not in offered:
            if not self.with_model:
                raise NoModel
            loaded = self.runtime.facts.model_id
            raise Refused(words("sharing").text("other_model", wanted=wanted, loaded=loaded))
        if self.hand is not None and self.hand.loaded(wanted) is None:
            visit.pending = link  # no link downloads anything
            title = self.hand.catalog.find(wanted).title
            raise Refused(words("sharing").text("choose_model", model=title))
        self._start(visit, link.experiment, prepare=False)
        visit.leave_grid()
        look(self.view(visit), visit, link)
        visit.link, visit.refill = link, True
