"""The contract of a panel: what it is given (`View`) and what it must offer (`Panel`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import gradio as gr

from components.widgets.rail import Station
from engine.facts import ModelFacts
from engine.trace import Rendered, Stepped, Trace

#: Figures of a head that the map of all heads can show.
FIGURES = ("on_first", "on_self", "on_previous", "entropy")
#: Operations of a layer, in order; no model has them all.
OPERATIONS = (
    *("attention_norm", "query", "key", "value", "query_norm", "key_norm"),
    *("cosines", "sines", "query_turned", "key_turned"),
    *("scores", "scaled", "capped", "mask", "weights", "mixed", "output", "output_norm", "residual"),
    *("feed_forward_norm", "gate", "up", "active", "gated", "down", "down_norm", "second_residual"),
)


@dataclass(frozen=True)
class Cursor:
    """What is selected, shared by all panels. `position` None follows the newest token."""

    turn: int = 0
    position: int | None = None
    layer: int = 0
    head: int = 0
    figure: str = "on_first"  # of each head, on the map of all heads
    operation: str = OPERATIONS[0]  # of the selected layer
    query: str = ""  # a token that the person looks up by its text
    branch: int | None = None  # compared with the run; None is the newest
    formula: str = ""  # words to add and take away, as the person typed it

    def within(self, facts: ModelFacts) -> "Cursor":
        """The same on this model, which may have fewer layers or heads than the one before."""
        return replace(self, layer=min(self.layer, facts.layers - 1), head=min(self.head, facts.heads - 1))


@dataclass(frozen=True)
class Recorded:
    """A record is shown: `made` of its `steps` tokens, by which program it was made."""

    made: int
    steps: int
    made_by: str
    alone: bool = False  # no model is loaded


class Probe(Protocol):
    """Recomputes something heavy about a run on the model: a name and its arguments in, plain values out."""

    def __call__(self, name: str, **arguments: Any) -> Any: ...


@dataclass(frozen=True, eq=False)
class View:
    """All a panel may look at. `probe` is None where nothing can be asked.

    `results` holds what probes gave about this very run, by the name of the probe: the newest answer of each. A panel
    that names a probe in its `CONTROLS` gets a button for it and shows the result once it is here.
    """

    facts: ModelFacts
    trace: Trace | None
    cursor: Cursor
    probe: Probe | None = None
    catalog: Sequence[Any] = ()
    results: Mapping[str, Any] = field(default_factory=dict)
    branches: Sequence[Any] = ()  # runs left for another way, oldest first
    grid: Any = None  # the newest grid as far as it is
    recorded: Recorded | None = None  # None where the run is the visitor's own

    @property
    def rendered(self) -> Rendered | None:
        """The selected turn as text and tokens, None before it was rendered."""
        return self.trace.rendered(self.cursor.turn) if self.trace else None

    @property
    def steps(self) -> tuple[Stepped, ...]:
        """The steps of the selected turn so far."""
        return self.trace.steps(self.cursor.turn) if self.trace else ()

    @property
    def step(self) -> Stepped | None:
        """The selected step: that of the selected position, else the newest; None on a prompt position."""
        if self.cursor.position is None:
            return self.steps[-1] if self.steps else None
        return next((step for step in self.steps if step.position == self.cursor.position), None)

    @property
    def fed_position(self) -> int | None:
        """The position whose inside is looked at: the one that was fed before the selected step, else the selected
        prompt position, else the last of the prompt; None before anything was rendered.
        """
        if self.step is not None:
            return self.step.position - 1
        if self.rendered is None:
            return None
        last = len(self.rendered.token_ids) - 1
        return last if self.cursor.position is None else min(self.cursor.position, last)

    @property
    def nearest_step(self) -> Stepped | None:
        """The selected step, or the first of the turn where a prompt position is selected."""
        return self.step or (self.steps[0] if self.steps else None)


@dataclass(frozen=True)
class Controls:
    """What a panel has above its widgets, for the page to build.

    A button for each probe of `asks`, whose words are "ask_<name>" in the copy; hidden while they are `idle`, with
    nothing to do just now. A field for text where `looks_up` names a field of the cursor, which gets the text; its
    words are "look_up" and "look_up_hint". The fields and the button of a grid.
    """

    asks: tuple[str, ...] = ()
    idle: Callable[[View], bool] = lambda _: False
    looks_up: str = ""
    grid: bool = False


class Panel(Protocol):
    """A module under components/ that shows one station of the pipeline, or several neighbours of it.

    A selection in any of its widgets carries a key that says what was meant, and the page does the rest:
    `{"position": p}` moves the cursor, `{"fed": p}` moves it to where position p is what the model was fed,
    `{"layer": l}`, `{"head": h}` and `{"figure": name}` choose among the heads, `{"operation": name}` among those of a
    layer, `{"query": text}` looks a token up as its field does, `{"token_id": t}` takes that token instead at the
    selected step, `{"branch": b}` chooses what is compared, and `{"cell": c}` makes the cell of a grid the run.
    """

    STATION: str  # its id, also the name of its copy file
    CONTROLS: Controls

    def stations(self, view: View) -> list[Station]:
        """Its entries on the rail: id, title, the live result for the selected step, a note under it."""

    def build(self) -> list[gr.HTML]:
        """Create its widgets inside the current Blocks, in the order `render` fills them."""

    def render(self, view: View) -> list[Any]:
        """One value for each widget of `build`; None hides it."""

    def unavailable(self, view: View) -> str | None:
        """Why there is nothing to show, or None."""
