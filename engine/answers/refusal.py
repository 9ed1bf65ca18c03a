"""Why a probe gave nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """The model or the run has not what was asked for; kept in a record like an answer, and told again."""

    reason: str
