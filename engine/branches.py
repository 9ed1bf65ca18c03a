"""What a session leaves behind when its run takes another way: whole traces, the newest few, without their caches."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from engine.refusals import Refused
from engine.said import said
from engine.trace import Event, Stepped, Trace

#: Branches that a session keeps, and bytes of the events that they hold, about.
MAX_BRANCHES = 8
MAX_BYTES = 8 << 20

#: What an item of a tuple takes: the bytes or the piece of a token, a span.
ITEM_BYTES = 64


@dataclass(frozen=True, eq=False)
class Branch:
    """A run as it was when it was left. Ids count up within a session and are not given twice."""

    id: int
    trace: Trace


class Branches:
    """The branches of one session, oldest first."""

    def __init__(self) -> None:
        self._kept: list[Branch] = []
        self._ids = itertools.count(1)

    def __iter__(self) -> Iterator[Branch]:
        return iter(tuple(self._kept))

    def keep(self, trace: Trace) -> None:
        """Keep a run that has made a token; the oldest go where there are too many, or they are too large."""
        if next(trace.of(Stepped), None) is None:
            return
        self._kept.append(Branch(next(self._ids), trace))
        while len(self._kept) > MAX_BRANCHES or (len(self._kept) > 1 and self.nbytes > MAX_BYTES):
            self._kept.pop(0)

    def find(self, branch_id: int) -> Branch:
        """Raises `Refused` for a branch that is not kept (any more)."""
        for branch in self._kept:
            if branch.id == branch_id:
                return branch
        raise Refused(said("branch_gone", branch=branch_id, kept=MAX_BRANCHES))

    def remove(self, branch_id: int) -> Branch:
        """Take a branch out. Raises `Refused` for one that is not kept (any more)."""
        branch = self.find(branch_id)
        self._kept.remove(branch)
        return branch

    def clear(self) -> None:
        self._kept.clear()

    @property
    def nbytes(self) -> int:
        """About the bytes of all events; what branches share is counted once."""
        events = {id(event): event for branch in self._kept for event in branch.trace.events}
        return sum(_nbytes(event) for event in events.values())


def _nbytes(event: Event) -> int:
    values = [getattr(event, field.name) for field in fields(event)]
    arrays = sum(value.nbytes for value in values if isinstance(value, np.ndarray))
    texts = sum(4 * len(value) for value in values if isinstance(value, str))
    return arrays + texts + ITEM_BYTES * sum(len(value) for value in values if isinstance(value, tuple))
