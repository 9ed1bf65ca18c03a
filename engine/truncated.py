"""What left a history that is too long, as an event of a trace."""

from dataclasses import dataclass
from typing import ClassVar, Literal

#: What became of the system prompt: there was none, all of it stays, a part of it, nothing, or the template has put
#: one of its own in its place.
SystemFate = Literal["none", "kept", "cut", "dropped", "replaced"]


@dataclass(frozen=True)
class Portion:
    """One message of the whole history as rendered; `message` None is what the template wrote on its own."""

    role: str
    message: int | None
    tokens: int
    kept: int  # of these tokens, those that stay


@dataclass(frozen=True)
class Summary:
    """What the model itself wrote in place of the messages that were dropped."""

    request: str  # the user message that asked for it; both are in the prompt, as messages that follow the history's
    text: str
    unread: tuple[int, ...]  # dropped messages that were too old to fit even into the prompt of the summary
    prompt_tokens: int
    tokens: int


@dataclass(frozen=True, eq=False)
class Truncated:
    """The history did not fit, and a part of it left the context. Token counts are those of the whole as rendered."""

    kind: ClassVar[str] = "truncated"
    turn: int
    strategy: str
    limit: int  # tokens that the prompt may have
    kept: tuple[int, ...]  # messages of which anything stays
    dropped: tuple[int, ...]
    portions: tuple[Portion, ...]
    before: int  # tokens of the whole history
    after: int  # tokens of the prompt that is left
    offset: int  # the model is told that the prompt's first token stands here; 0 but in a window that goes on
    system: SystemFate
    summary: Summary | None
    cached: int  # positions that the cache held before this turn
    reused: int  # of these, those that this turn goes on with
    computed: int  # positions that the prompt costs, those of the summary included
