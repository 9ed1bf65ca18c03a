"""When a turn ends, and what decided it.

The order is that of `generate`: length, stop string, EOS, then what a caller adds (the end of a grammar). Where
several hold at one token, `generate` stops all the same; the first in this order is the reason and the others stand in
the evidence under "also". A complete call of a tool comes before all of them (`engine/tools/rounds.py`).
"""

from dataclasses import dataclass
from typing import Any

from engine.stages.detokenizer import StopMatch
from engine.trace import StopReason


@dataclass(frozen=True)
class StopRule:
    """The limits of one turn; all count tokens.

    An empty `eos_ids` is a loop that does not watch for the end-of-sequence token.
    """

    prompt_tokens: int
    max_new_tokens: int
    context: int  # positions that the model has
    eos_ids: tuple[int, ...] = ()

    def check(
        self, *, token_id: int, new_tokens: int, match: StopMatch | None = None, grammar_ended: bool = False
    ) -> tuple[StopReason, dict[str, Any]] | None:
        """Whether the turn ends after `token_id`, the last of `new_tokens` sampled ones: a reason with its evidence."""
        return first_of(
            self.reached(token_id=token_id, new_tokens=new_tokens, match=match, grammar_ended=grammar_ended)
        )

    def reached(
        self, *, token_id: int, new_tokens: int, match: StopMatch | None = None, grammar_ended: bool = False
    ) -> dict[StopReason, dict[str, Any]]:
        """All that would end the turn now, each with its evidence, in the order in which they count."""
        holds: dict[StopReason, dict[str, Any]] = {}
        if limit := self._limit(new_tokens):
            holds["length"] = limit
        if match:
            holds["stop_string"] = {
                "string": match.string,
                "index": match.index,
                "start": match.start,
                "end": match.end,
            }
        if token_id in self.eos_ids:
            holds["eos"] = {"token_id": token_id}
        if grammar_ended:
            holds["grammar_end"] = {"token_id": token_id}
        return holds

    def _limit(self, new_tokens: int) -> dict[str, Any] | None:
        """The limit that is reached. The context is full when every position has its token, the newest included."""
        if new_tokens >= self.max_new_tokens:
            return {"limit": "max_new_tokens", "max_new_tokens": self.max_new_tokens, "new_tokens": new_tokens}
        if self.prompt_tokens + new_tokens >= self.context:
            return {
                "limit": "context",
                "context": self.context,
                "prompt_tokens": self.prompt_tokens,
                "new_tokens": new_tokens,
            }
        return None


def first_of(holds: dict[StopReason, dict[str, Any]]) -> tuple[StopReason, dict[str, Any]] | None:
    """The reason that counts; the others that hold stand in its evidence under "also"."""
    if not holds:
        return None
    reason, *also = holds
    return reason, holds[reason] | {"also": also}
