"""Other ways for a conversation: a message edited, a branch gone back to, a grid of settings and one of its cells."""

from collections.abc import Iterator
from typing import Any

from components.compare.parting import parting
from components.compare.sides import unknown
from components.compose import transcript
from components.copy import words
from components.desk_part import DeskPart
from components.editing import message_to_edit
from components.grid_cells import cell_experiment, overrides, shortened
from components.playing import live_only
from components.telling import taken, telling, told
from components.visit import Visit
from engine.refusals import Refused


class Branching(DeskPart):
    """The part of the desk that keeps what was there; how a run is begun is the desk's own."""

    @told
    def edit(self, visit: Visit) -> None:
        """Put the selected message's text into the field, or leave the edit that is under way."""
        if visit.editing is not None:
            visit.editing, visit.returned = None, ""
            return
        live_only(visit)
        self._trace(visit)  # raises where the session was put away
        visit.editing, visit.returned = message_to_edit(self.view(visit))

    @taken
    def save_edit(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """The conversation up to the edited message, with its new text; the old one is kept as a branch."""
        if visit.editing is None:
            return
        if not message.strip():
            raise Refused(words("page").text("edit_empty"))
        self._go_on(visit, message, form)

    def grid(self, visit: Visit, temperatures: str, seeds: str, form: dict[str, Any]) -> Iterator[None]:
        """The newest question under every temperature with every seed; yields as it comes."""
        with telling(self, visit):
            live_only(visit)
            cells = overrides(temperatures, seeds)
            asked = self._experiment(visit, form, transcript(self._trace(visit)))
            shortly = self.runtime.parse(shortened(asked))
            visit.asked, visit.grid = asked, None
            for found in self.runtime.grid(visit.session_id, shortly, cells):
                if visit.asked is not asked:  # another conversation was begun meanwhile
                    return
                visit.grid = found
                yield

    def take(self, visit: Visit, branch: Any) -> None:
        """Go back to a branch; the form follows."""
        if branch is None:
            raise Refused(words("compare").text("no_branch"))
        self.runtime.take(visit.session_id, branch.id)
        visit.editing, visit.refill = None, True
        self._forget(visit)

    def cross(self, visit: Visit, branch: Any) -> None:
        """Work out what the run and the branch gave each other's tokens, where nobody has recorded it."""
        view, results = self.view(visit), visit.results
        if branch is None or view.trace is None:
            raise Refused(words("compare").text("no_branch"))
        found = parting(view.trace, branch.trace)
        crossed: dict[Any, float] = {}
        for wanted, side in zip(unknown(view, branch), (None, branch.id), strict=True):
            if wanted and found is not None:
                turn = found.turn if side is None else found.their_turn
                pairs = {"steps": tuple(step for step, _ in wanted), "token_ids": tuple(token for _, token in wanted)}
                chances = self._probe(visit, "chances", turn=turn, branch=side, **pairs)
                keys = zip(chances.steps, chances.token_ids, chances.probabilities.tolist(), strict=True)
                crossed |= {(side, turn, step, token): chance for step, token, chance in keys}
        results["crossed"] = crossed

    def choose_cell(self, visit: Visit, index: int) -> None:
        """Make a cell of the grid the run; the form follows."""
        if visit.grid is None or visit.asked is None or index not in range(len(visit.grid.cells)):
            raise Refused(words("compare").text("no_cell"))
        own = visit.grid.cells[index].overrides
        self._start(visit, self.runtime.parse(cell_experiment(visit.asked, own)), branch=True)
        visit.refill = True
