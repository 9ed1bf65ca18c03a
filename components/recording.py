"""Making a record of a visit's run: its trace, what was looked at, and the inside of steps that the person names."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from components.copy import speak, words
from components.desk_part import DeskPart
from components.telling import telling
from components.visit import Visit
from engine.answers.refusal import Refusal
from engine.experiment import ExperimentError
from engine.questions import Question, questions, steps_named, wanted
from engine.record import Answered, Record
from engine.refusals import Busy, NoGpu, NothingStarted, Refused, SessionGone
from engine.trace import Event, Trace

#: Steps whose inside one record made here may hold.
MAX_STEPS = 12
#: Refusals that are of this moment, and not of the run.
OF_THIS_MOMENT = (Busy, NoGpu, NothingStarted, SessionGone)
#: Questions that are remembered for a record.
MAX_LOOKED = 40


class Recording(DeskPart):
    """The part of the desk that makes records."""

    def record(self, visit: Visit, steps: str = "") -> Iterator[Record | None]:
        """The run as a record, at last; before it, None after each answer, while `visit.said` says how far.

        `steps` names those of the newest turn whose inside is kept. Stop ends it without a record.
        """
        with telling(self, visit):
            trace = self._trace(visit)
            if not trace.turns:
                raise Refused(words("record").text("nothing"))
            asked = _questions(visit, trace, steps)
            here = visit.results
            visit.keeping, answers, results = True, [], dict(here)
            for done, (name, arguments) in enumerate(asked):
                speak(visit.language)  # each step of a generator may be in another context
                if not visit.keeping:
                    raise Refused(words("record").text("stopped"))
                if _moment(self._trace(visit)) is not _moment(trace):
                    raise Refused(words("record").text("changed"))
                if done % 8 == 0:
                    visit.said = words("record").text("keeping", done=done, all=len(asked))
                    yield None
                answers.append(self._kept(visit, trace, name, arguments))
            visit.said = ""
            if visit.results is here:  # else another run has begun
                visit.results = results
            yield Record(trace, tuple(answers))

    def remember(self, visit: Visit, looked: dict[str, Any], name: str, arguments: dict[str, Any], found: Any) -> None:
        """A view was looked at: a record is to have it. What it gave stays true until the run goes on.

        `looked` are the answers about the run that was asked, which may no longer be the visit's.
        """
        answer = Answered(name, arguments, found)
        looked.pop(answer.key, None)
        while len(looked) >= MAX_LOOKED:
            looked.pop(next(iter(looked)), None)
        looked[answer.key] = (_moment(self._trace(visit)), answer)

    def _noted(
        self, visit: Visit, looked: dict[str, Any], name: str, branch: int | None, arguments: dict[str, Any]
    ) -> Any:
        """What a probe gives; that it has a reason to give nothing is remembered too."""
        try:
            return self._found(visit, name, branch, arguments)
        except OF_THIS_MOMENT:
            raise
        except (ExperimentError, Refused) as refused:
            if branch is None and not (visit.playing or visit.keeping):
                self.remember(visit, looked, name, arguments, Refusal.of(refused))
            raise

    def _kept(self, visit: Visit, trace: Trace, name: str, arguments: dict[str, Any]) -> Answered:
        """The answer as the run stands now, or the reason why there is none."""
        asked = Answered(name, arguments, None)
        looked: Answered
        moment, looked = visit.looked.get(asked.key, (None, asked))
        if moment is _moment(trace):
            return looked
        try:
            return replace(asked, result=self._probe(visit, name, **arguments))
        except OF_THIS_MOMENT:
            raise
        except (ExperimentError, Refused) as refused:
            return replace(asked, result=Refusal.of(refused))


def _moment(trace: Trace) -> Event | None:
    """What happened last: the same object for as long as the run neither goes on nor takes another way."""
    return trace.events[-1] if trace.events else None


def _questions(visit: Visit, trace: Trace, steps: str) -> tuple[Question, ...]:
    """What was looked at, then what belongs to the named steps; each once."""
    found = {key: (looked.probe, looked.arguments) for key, (_, looked) in list(visit.looked.items())}
    cursor, text = visit.cursor.within(trace.facts), steps.strip().lower()
    try:
        chosen = None if text == "all" else steps_named(text)
    except ValueError:
        raise Refused(words("record").text("steps_wanted")) from None
    count = len(trace.steps(trace.turns - 1)) if chosen is None else len(chosen)
    if count > MAX_STEPS:
        raise Refused(words("record").text("many_steps", most=MAX_STEPS, count=count))
    inside = wanted(trace, trace.facts, chosen, layer=cursor.layer, head=cursor.head)
    for name, arguments in questions(trace, inside):
        found.setdefault(Answered(name, arguments, None).key, (name, arguments))
    return tuple(found.values())
