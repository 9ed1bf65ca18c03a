"""Why a probe gave nothing."""

from dataclasses import dataclass
from typing import Self

from engine.refusals import Refused
from engine.said import Sentence, said
from engine.values import ExperimentError


@dataclass(frozen=True)
class Refusal:
    """The model or the run has not what was asked for; kept in a record like an answer, and told again."""

    reason: Sentence

    @classmethod
    def of(cls, error: ExperimentError | Refused) -> Self:
        """What was said, with the argument that is meant."""
        if isinstance(error, ExperimentError) and error.path:
            return cls(said("of_field", field=error.path, reason=error.message))
        return cls(error.message if isinstance(error, ExperimentError) else error.args[0])
