"""What one visitor's page remembers between events, besides the run that the engine keeps for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from components.copy import DEFAULT
from components.lesson_player.library import Reading
from components.panel import Cursor
from engine.experiment import Experiment
from engine.link import Link

#: One for all visitors: what it guards takes microseconds.
_CHOOSING = Lock()


@dataclass
class Visit:
    """Light and changed in place: the live loop of a run sees at once what was clicked meanwhile."""

    session_id: str = ""
    language: str = DEFAULT  # in which the page speaks
    station: str = "prompt"  # the chosen station of the rail
    cursor: Cursor = Cursor()
    results: dict[str, Any] = field(default_factory=dict)  # checks that the person asked for, by name
    typed: str = ""  # a message on its way from its field into a run
    returned: str = ""  # a message on its way into its field: one that was refused, or that is to be edited
    running: bool = False  # a run is under way
    turned_away: int = 0  # presses of Run that were refused, and whose run comes all the same
    probed: dict[Any, Any] = field(default_factory=dict)  # what probes found about the run as it stands
    notice: str = ""  # the last problem, in words a person can act on
    said: str = ""  # what was done, where that cannot be seen
    editing: int | None = None  # the message whose new text is being written
    draft: str = ""  # what stood in the field before that text
    grid: Any = None  # the newest grid, as far as it is
    asked: Experiment | None = None  # what the grid is of, at its full length
    refill: bool = False  # the form is to show the settings of the run
    reading: Reading | None = None  # where the visitor is in the lessons
    choices: int = 0  # made so far: what an older one would show is not shown once there is a newer
    chosen: dict[str, int] = field(default_factory=dict)  # by name: the number of the choice that it is from
    playing: Any = None  # the record that is shown in the place of the run, with how far it is
    looked: dict[str, Any] = field(default_factory=dict)  # answers about this run, newest last
    keeping: bool = False  # a record is being made
    link: Link | None = None  # was opened, and the place it names was not reached yet
    pending: Link | None = None  # waits for the person to choose its model
    shared: str = ""  # the text of the newest link that was made
    loading: str = ""  # how far the model has come that was chosen, while it is being loaded
    wanted: str = ""  # the id of the model that was chosen last

    def choose(self, found: Mapping[str, Any], order: int = 0) -> None:
        """Takes over the station or fields of the cursor, each but where a later choice has set it.

        Quick choices overtake one another on their way here; `order` is the page's number of this one.
        """
        with _CHOOSING:
            newest = {name: value for name, value in found.items() if order >= self.chosen.get(name, 0)}
            self.chosen |= dict.fromkeys(newest, order)
            self.station = newest.pop("station", self.station)
            self.cursor = replace(self.cursor, **newest)
            self.choices += 1

    def move(self, by: int, last: int) -> bool:
        """Moves the cursor along the positions up to `last`; False where there is none so far on.

        Each of several moves at once goes on from where the one before has come to.
        """
        with _CHOOSING:
            here = last if self.cursor.position is None else self.cursor.position
            if here + by > last:
                return False
            self.cursor = replace(self.cursor, position=max(here + by, 0))
            self.choices += 1
            return True

    def look_at(self, **fields: Any) -> None:
        """Sets fields of the cursor; those chosen meanwhile stay."""
        with _CHOOSING:
            self.cursor = replace(self.cursor, **fields)

    def leave_grid(self) -> None:
        """Another conversation is in sight: the grid goes, and what is still computed of it comes to nobody."""
        self.asked = self.grid = None
