"""A history of which only some messages are rendered, the spans still named by their place in the whole history."""

from collections.abc import Sequence
from dataclasses import replace

from engine.context.choose import Unit, first_that_fits, system_head
from engine.context.summary import REQUEST, SUMMARY_TOKENS, greedy_ids, pair, text_of
from engine.dialogue import messages_of
from engine.experiment import ExperimentError, Message
from engine.history import render_turn
from engine.model import LoadedModel
from engine.said import said
from engine.trace import Rendered, Trace
from engine.truncated import Summary


class History:
    """The messages of one turn, and how they render where some are left out."""

    def __init__(self, loaded: LoadedModel, trace: Trace, turn: int) -> None:
        self.loaded, self.trace, self.turn = loaded, trace, turn
        self.messages = messages_of(trace, turn)
        self.head = system_head(self.messages)

    def render(self, kept: Unit, summary: str | None = None) -> Rendered:
        """These messages alone; a summary stands after the system prompt, as two messages that count on at the end."""
        places = list(kept)
        chosen = [self.messages[index] for index in kept]
        if summary is not None:
            at = sum(index < self.head for index in kept)
            chosen[at:at] = pair(summary)
            places[at:at] = [len(self.messages), len(self.messages) + 1]
        rendered = render_turn(self.loaded, self.trace, self.turn, chosen)
        spans = (
            span if span.message is None else replace(span, message=places[span.message]) for span in rendered.spans
        )
        return replace(rendered, spans=tuple(spans))

    def sum_up(self, kept: Unit, limit: int, most: int) -> tuple[Summary, Rendered]:
        """Let the model sum up what is dropped, from a prompt of at most `most` tokens, and render the rest with it.

        What is too old to fit into that prompt goes unread. A summary that renders longer than it was made gives up
        its last tokens.
        """
        stays = set(kept)
        dropped = [index for index in range(len(self.messages)) if index not in stays]
        prompt, unread = self._prompt(dropped, most)
        ids = greedy_ids(self.loaded, prompt, SUMMARY_TOKENS)
        shown = len(ids)
        while len((rendered := self.render(kept, text_of(self.loaded, ids[:shown]))).token_ids) > limit and shown:
            shown -= 1
        text = text_of(self.loaded, ids[:shown])
        return Summary(REQUEST, text, unread, len(prompt), len(ids)), rendered

    def _prompt(self, dropped: Sequence[int], most: int) -> tuple[list[int], tuple[int, ...]]:
        """The ids that ask for a summary of the newest of the dropped messages that fit, and the messages that do not.

        Messages are left out as the oldest, up to the next of the user's; how many is found by halving, since each try
        renders all that is left.
        """
        starts = [0, *(at for at in range(1, len(dropped)) if self.messages[dropped[at]].role == "user"), len(dropped)]
        asked: dict[Unit, list[int]] = {}

        def tokens(read: Unit) -> int:
            asked[read] = asked.get(read) or self._asking(read)
            return len(asked[read])

        reads = [tuple(dropped[at:]) for at in starts]
        found = first_that_fits(reads, tokens, most)
        if found is None:
            raise ExperimentError("context.strategy", said("summary_too_long", tokens=tokens(reads[-1]), most=most))
        return asked[reads[found]], tuple(dropped[: starts[found]])

    def _asking(self, read: Unit) -> list[int]:
        """The ids that ask for a summary of these messages."""
        chosen = [*self.messages[: self.head], *(self.messages[index] for index in read)]
        asking = [*chosen, Message(role="user", content=REQUEST)]
        ids: list[int] = render_turn(self.loaded, self.trace, self.turn, asking).token_ids.tolist()
        return ids
