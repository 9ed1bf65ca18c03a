"""Making a record of a visit's run: its trace, what was looked at, and the inside of steps that the person names."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from components.copy import words
from components.telling import telling
from components.visit import Visit
from engine.experiment import ExperimentError
from engine.questions import Question, questions, wanted
from engine.record import Answered, Record
from engine.refusals import Refused
from engine.trace import Trace

#: Steps whose inside one record made here may hold.
MAX_STEPS = 12
#: Questions that are remembered for a record.
MAX_LOOKED = 40


class Recording(ABC):
    """The part of the desk that makes records."""

    @abstractmethod
    def reopen(self, visit: Visit) -> None: ...
    @abstractmethod
    def _trace(self, visit: Visit) -> Trace: ...
    @abstractmethod
    def _probe(self, visit: Visit, name: str, *, branch: int | None = None, **arguments: Any) -> Any: ...

    def record(self, visit: Visit, steps: str = "") -> Iterator[Record | None]:
        """The run as a record, at last; before it, None after each answer, while `visit.said` says how far.

        `steps` names those of the newest turn whose inside is kept. Stop ends it without a record.
        """
        with telling(self, visit):
            trace = self._trace(visit)
            if not trace.turns:
                raise Refused(words("record").text("nothing"))
            asked = _questions(visit, trace, steps)
            visit.keeping, answers, results = True, [], dict(visit.results)
            for done, (name, arguments) in enumerate(asked):
                if not visit.keeping:
                    raise Refused(words("record").text("stopped"))
                if done % 8 == 0:
                    visit.said = words("record").text("keeping", done=done, all=len(asked))
                    yield None
                answers += self._kept(visit, name, arguments)
            visit.said, visit.results = "", results
            yield Record(trace, tuple(answers))

    def remember(self, visit: Visit, name: str, arguments: dict[str, Any]) -> None:
        """A view was looked at: a record is to have it."""
        key = Answered(name, arguments, None).key
        visit.looked.pop(key, None)
        while len(visit.looked) >= MAX_LOOKED:
            visit.looked.pop(next(iter(visit.looked)), None)
        visit.looked[key] = (name, arguments)

    def _kept(self, visit: Visit, name: str, arguments: dict[str, Any]) -> list[Answered]:
        """The answer as the run stands now; none where there is none any more."""
        try:
            return [Answered(name, arguments, self._probe(visit, name, **arguments))]
        except (ExperimentError, Refused):
            return []


def _questions(visit: Visit, trace: Trace, steps: str) -> tuple[Question, ...]:
    """What was looked at, then what belongs to the named steps; each once."""
    found = dict(visit.looked)
    cursor, text = visit.cursor, steps.strip().lower()
    chosen = None if text == "all" else _numbers(text)
    count = len(trace.steps(trace.turns - 1)) if chosen is None else len(chosen)
    if count > MAX_STEPS:
        raise Refused(words("record").text("many_steps", most=MAX_STEPS, count=count))
    inside = wanted(trace, trace.facts, chosen, layer=cursor.layer, head=cursor.head)
    for name, arguments in questions(trace, inside):
        found.setdefault(Answered(name, arguments, None).key, (name, arguments))
    return tuple(found.values())


def _numbers(text: str) -> list[int]:
    parts = text.replace(",", " ").split()
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise Refused(words("record").text("steps_wanted"))
    return [int(part) for part in parts]
