"""A recorded run on the page: walked through without a model, until a message or a setting begins a run."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from components.compose import answered, compose, for_other_model, form_values, transcript, without_ids
from components.copy import sentences, words
from components.desk_part import DeskPart
from components.panel import Recorded, View
from components.telling import told
from components.visit import Visit
from engine.playback import NotRecorded, Playback, WithoutModel, same_model
from engine.record import Record
from engine.refusals import Refused, SessionGone
from engine.trace import Trace

#: Seconds between two tokens while Run walks through a record.
PACE = 0.12


@dataclass
class Playing:
    """A record in the place of a visit's run, `made` tokens into it; changed in place."""

    playback: Playback
    made: int
    halted: bool = False

    @property
    def trace(self) -> Trace:
        """The run as far as it is shown."""
        return self.playback.trace_at(self.made)

    @property
    def ended(self) -> bool:
        """True where the record has no further token."""
        return self.made >= self.playback.steps

    def go(self, by: int) -> None:
        """Some tokens on or back. Raises `Refused` at the end of the record."""
        if by > 0 and self.ended:
            raise Refused(words("record").text("at_end"))
        self.made = max(0, min(self.made + by, self.playback.steps))


class Player(DeskPart):
    """The part of the desk that shows records."""

    _record: Record | None  # what a page of a program without a model shows

    @property
    def with_model(self) -> bool:
        """False where the program only shows records."""
        return not isinstance(self.runtime, WithoutModel)

    def play(self, visit: Visit, record: Record, *, made: int | None = None) -> None:
        """Show a record in the place of the visit's run: all of it, or its first `made` tokens. The form follows."""
        playback = Playback(record)
        visit.playing = Playing(playback, playback.steps if made is None else max(0, min(made, playback.steps)))
        visit.leave_grid()
        visit.editing, visit.notice, visit.refill = None, "", True
        visit.look_at(layer=0, head=0, branch=None)
        visit.looked = {}
        self._forget(visit)

    def close_record(self, visit: Visit) -> None:
        """In sight again is the visitor's own run; where no model is, the record that the program was given."""
        playing = visit.playing
        if self._record is not None and playing is not None and playing.playback.record is not self._record:
            self.play(visit, self._record)
            return
        visit.playing, visit.refill = None, True
        self._forget(visit)

    @told
    def run_live(self, visit: Visit) -> None:
        """Leave the record: its experiment begins anew on the loaded model."""
        if visit.playing is None:
            return
        record, loaded = visit.playing.playback.record, self.runtime.facts_of(visit.session_id)
        recorded = record.trace.experiment
        if recorded.model == loaded.model_id:
            self._start(visit, self.runtime.parse(recorded.model_dump()))
            visit.refill = True
            return
        asked = self.runtime.parse(for_other_model(recorded, loaded, record.facts))
        self._start(visit, asked)
        visit.refill = True
        say = words("record")
        visit.notice = sentences(
            say.text("other_model", recorded=recorded.model, loaded=loaded.title),
            say.text("bare_question") if recorded.messages is not None and asked.messages is None else None,
        )

    def played(self, visit: Visit, playing: Playing) -> View:
        """What the page may show of a record."""
        playback, trace = playing.playback, playing.trace
        return View(
            facts=playback.facts,
            trace=trace,
            cursor=replace(visit.cursor.within(playback.facts), turn=max(trace.turns - 1, 0)),
            probe=partial(self._probe, visit),
            catalog=self.runtime.catalog.models,
            results=visit.results,
            recorded=Recorded(playing.made, playback.steps, playback.record.made_by, alone=not self.with_model),
        )

    def recall(self, visit: Visit, playing: Playing, name: str, **arguments: Any) -> Any:
        """What the record has of a probe; what it has not is computed where its very model is loaded."""
        try:
            return playing.playback.probe(playing.made, name, **arguments)
        except NotRecorded as missing:
            if self._made_here(visit, playing):
                try:
                    return self.runtime.probe(visit.session_id, name, given=playing.trace, **arguments)
                except SessionGone:  # while the record was looked at; any other session will do
                    self.reopen(visit)
                if self._made_here(visit, playing):
                    return self.runtime.probe(visit.session_id, name, given=playing.trace, **arguments)
            key = "later" if missing.later else "not_recorded"
            raise Refused(words("record").text(key, probe=name)) from None

    def _made_here(self, visit: Visit, playing: Playing) -> bool:
        """True where the visit's model is the very one of the record."""
        return self.with_model and same_model(playing.playback.facts, self.runtime.facts_of(visit.session_id))

    def walks(self, visit: Visit, message: str, form: dict[str, Any]) -> bool:
        """True where Step or Run goes on in a record: nothing is said, and the form shows the record's settings."""
        if visit.playing is None or message.strip():
            return False
        trace = visit.playing.trace
        shown, messages = trace.experiment, transcript(trace)
        own, now = (compose(it, shown=shown, model="", messages=messages) for it in (form_values(shown), form))
        return own == now

    def leave(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """Begin a run with what is said after the record, or with other settings where nothing is."""
        trace = visit.playing.trace
        said = [{"role": "user", "content": message}]
        if not message.strip():
            messages = transcript(trace)
        elif not trace.steps(0):
            messages = said
        elif trace.stopped(trace.turns - 1) is None or trace.calling:
            raise Refused(words("page").text("answer_first"))
        else:
            messages = [*answered(trace), *said]
        loaded = self.runtime.facts_of(visit.session_id)
        other = trace.experiment.model != loaded.model_id
        self._start(visit, self._experiment(visit, without_ids(form) if other else form, messages))
        if other:
            visit.refill = True
            visit.notice = words("record").text("other_model", recorded=trace.experiment.model, loaded=loaded.title)

    def walk(self, visit: Visit, playing: Playing) -> Iterator[None]:
        """Token after token to the end of the turn, as a run does; Stop ends it."""
        playing.halted = False
        while not playing.halted and visit.playing is playing:
            playing.go(1)
            yield
            trace = playing.trace
            if playing.ended or (trace.stopped(trace.turns - 1) is not None and not trace.calling):
                return
            time.sleep(PACE)


def live_only(visit: Visit) -> None:
    """Raise `Refused` while a record is shown: what was asked changes a run."""
    if visit.playing is not None:
        raise Refused(words("record").text("live_first"))
