"""What happened: the events of a run and the `Trace` they make, as frozen values.

Positions count from 0 over the whole context, probabilities lie in [0, 1], entropy is in nats, sizes are in
bytes, times in seconds.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.said import Sentence
from engine.truncated import Truncated

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Shape = tuple[int, ...]

StopReason = Literal[
    "eos",
    "length",
    "stop_string",
    "tool_call",
    "tool_limit",
    "grammar_end",
    "no_candidate",
    "cancelled",
    "error",
]


@dataclass(frozen=True)
class Span:
    """A stretch [start, end) of the rendered text, in characters.

    `message` indexes the experiment's messages (follow-ups and answers count on); None marks what the template
    added on its own: a default system prompt, the generation prompt.
    """

    start: int
    end: int
    role: str
    message: int | None
    kind: Literal["scaffold", "content"]


@dataclass(frozen=True)
class Parted:
    """Where a newly rendered context stops matching the cache: the first position whose ids differ."""

    position: int
    cached_id: int
    new_id: int


@dataclass(frozen=True)
class PrefixLookup:
    """What the cache of system prompts had for a turn that its own cache could not help.

    Compared are entries that this visitor may see: `common` leading positions are those of the nearest.
    """

    entries: int
    system: int  # positions of this context's system prompt: as many can be had at most
    common: int
    parted: Parted | None  # the first pair that differs from the nearest entry

    @property
    def hit(self) -> bool:
        """True where the whole system prompt was there."""
        return self.common == self.system


@dataclass(frozen=True, eq=False)
class Rendered:
    """A turn's context as text and as n tokens."""

    kind: ClassVar[str] = "rendered"
    turn: int
    text: str
    spans: tuple[Span, ...]
    token_ids: Ints  # [n]
    span_index: Ints  # [n], index into spans; -1 for a token that the tokenizer put in (a BOS)
    pieces: tuple[str, ...]  # [n], as the vocabulary writes them
    token_bytes: tuple[bytes, ...]  # [n], the UTF-8 bytes each stands for
    special: Bools  # [n], True for a control token
    marks_in_content: int  # control marks typed inside messages; neutralised unless the experiment obeys them
    reused: int  # positions taken from a cache: of the turn before, or of system prompts where `prefix` is given
    parted: Parted | None  # from the cache of the turn before
    cached: int = 0  # positions that the turn before left in the cache
    refused: Sentence | None = None  # why that cache could not be cut back to what is shared
    prefix: PrefixLookup | None = None  # None where the cache of system prompts was not asked

    @property
    def dropped(self) -> int:
        """Positions of the turn before that left the cache."""
        return self.cached - (self.reused if self.prefix is None else 0)


@dataclass(frozen=True, eq=False)
class Prefilled:
    """Positions first … last were computed in one forward."""

    kind: ClassVar[str] = "prefilled"
    turn: int
    first: int
    last: int
    shapes: dict[str, Shape]  # input_ids, attention_mask, position_ids, logits, keys, values (of layer 0)
    kv_tokens: int
    kv_bytes: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Stage:
    """One processor's effect on the whole distribution. Stage 0 is the model's own logits ("logits")."""

    name: str
    parameters: dict[str, Any]
    kept: int  # tokens with a finite logit after it
    entropy: float  # nats, after it
    mass_removed: float  # probability, as it stood before, of the tokens that this stage cut


@dataclass(frozen=True, eq=False)
class Draw:
    """One random pick from the final distribution.

    torch draws by a race: token i arrives at time E_i / p_i with E_i exponential, and the earliest wins. The
    winning time T is independent of the winner and exponential with mean 1, so `u = low + (high - low) * exp(-T)`
    is a uniform number that picks the very same token on the cumulative line.
    """

    u: float
    low: float  # the drawn token's interval on the cumulative line, candidates by falling probability
    high: float
    drawn_id: int  # what the draw gave, also where a person chose otherwise
    race_time: float  # T, dimensionless
    runner_up_id: int | None
    runner_up_time: float | None


@dataclass(frozen=True, eq=False)
class EosScore:
    """The best-placed end-of-sequence token at a step."""

    token_id: int
    logit: float
    probability: float  # by the model's own logits
    rank: int  # 1 = best, by the model's own logits
    cut_by: str | None  # the stage that gave it −inf, None while it can still be drawn


@dataclass(frozen=True, eq=False)
class Stepped:
    """One token was chosen. c candidates are followed through s stages (stage 0 = the model's own logits)."""

    kind: ClassVar[str] = "stepped"
    turn: int
    step: int
    position: int
    token_id: int
    piece: str
    token_bytes: bytes
    special: bool
    forced: bool
    shapes: dict[str, Shape]  # what the forward that gave these logits was fed, and K/V after it
    stages: tuple[Stage, ...]  # [s]
    candidate_ids: Ints  # [c], by falling probability after the last stage, then by the model's own
    candidate_bytes: tuple[bytes, ...]  # [c]
    logits: Floats  # [s, c], −inf where cut
    probabilities: Floats  # [s, c], 0 where cut
    draw: Draw | None  # None when greedy
    eos: EosScore | None
    kv_tokens: int  # positions in the cache when the token was chosen
    kv_bytes: int
    seconds: float  # the forward; 0 for the first step of a turn, whose logits come from the prefill
    overhead_seconds: float  # everything else in the step
    text: str  # newly shown
    held_bytes: int  # bytes not yet shown: half a character, or what may become a stop string

    @property
    def natural_id(self) -> int:
        """What would have been taken had nobody chosen: the draw, or the best candidate of a greedy step."""
        return self.draw.drawn_id if self.draw else int(self.candidate_ids[0])


@dataclass(frozen=True, eq=False)
class ToolCalled:
    """A tool ran, or could not: either `result` or `error` is what goes back to the model."""

    kind: ClassVar[str] = "tool_called"
    turn: int
    name: str
    arguments: dict[str, Any]
    result: str | None
    error: str | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Stopped:
    """A turn ended. `evidence` holds what decided it: an id, a string, a limit, a stage, a message."""

    kind: ClassVar[str] = "stopped"
    turn: int
    reason: StopReason
    evidence: dict[str, Sentence | Any]
    text: str  # shown at the end: what was held back and turned out harmless


Event = Rendered | Prefilled | Stepped | Truncated | ToolCalled | Stopped


@dataclass(frozen=True, eq=False)
class Trace:
    """An experiment, the model it ran on, and the events so far."""

    experiment: Experiment
    facts: ModelFacts
    versions: dict[str, str]
    events: tuple[Event, ...] = field(default=())

    def of(self, kind: type, turn: int | None = None) -> Iterator[Any]:
        """The events of one class, of one turn or of all."""
        return iter(self._sorted.get((kind, turn), ()))

    @property
    def turns(self) -> int:
        """Turns that were begun."""
        return len(self._sorted.get((Rendered, None), ()))

    def rendered(self, turn: int) -> Rendered | None:
        return next(self.of(Rendered, turn), None)

    def truncated(self, turn: int) -> Truncated | None:
        return next(self.of(Truncated, turn), None)

    def offset(self, turn: int) -> int:
        """Where the turn's first token stands in the whole history; above 0 in a sliding window that has moved."""
        truncated = self.truncated(turn)
        return truncated.offset if truncated else 0

    def prefilled(self, turn: int) -> Prefilled | None:
        return next(self.of(Prefilled, turn), None)

    def steps(self, turn: int) -> tuple[Stepped, ...]:
        return self._sorted.get((Stepped, turn), ())

    def stopped(self, turn: int) -> Stopped | None:
        """How the turn ended; the newest end, where a person cancelled what follows a call."""
        ends: tuple[Stopped, ...] = self._sorted.get((Stopped, turn), ())
        return ends[-1] if ends else None

    def unfed(self, turn: int) -> bool:
        """True where the turn ended in an error before the model was fed anything of it."""
        stopped = self.stopped(turn)
        failed = stopped is not None and stopped.reason == "error"
        return failed and self.prefilled(turn) is None and not self.steps(turn)

    def answered(self, turn: int) -> int:
        """How many turns before this one answered a message; those that ended in a call of a tool did not."""
        ends = [self.stopped(former) for former in range(turn)]
        return sum(1 for end in ends if end is None or end.reason != "tool_call")

    @property
    def calling(self) -> bool:
        """True where the newest turn ended in calls: their results and another turn follow by themselves."""
        stopped = self.stopped(self.turns - 1)
        return stopped is not None and stopped.reason == "tool_call"

    def answer(self, turn: int) -> str:
        """The text shown for a turn so far."""
        ends = "".join(stopped.text for stopped in self.of(Stopped, turn))
        return "".join(step.text for step in self.steps(turn)) + ends

    @cached_property
    def _sorted(self) -> dict[tuple[type, int | None], tuple[Any, ...]]:
        """The events by class and turn, and by class alone, each in order. Made once: a trace never changes."""
        found: defaultdict[tuple[type, int | None], list[Event]] = defaultdict(list)
        for event in self.events:
            kind = type(event)
            found[kind, event.turn].append(event)
            found[kind, None].append(event)
        return {key: tuple(events) for key, events in found.items()}

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the fields alone."""
        return {item.name: getattr(self, item.name) for item in fields(self)}
