"""Which messages stay when a history is too long.

Whole exchanges leave: a user message and all that answers it, so that roles go on alternating, the first message after
the system prompt is the user's, and a tool call and its results stay or go together. The newest exchange always stays.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from engine.experiment import Message
from engine.values import Strategy

Unit = tuple[int, ...]  # indices of messages that stay or leave together


def system_head(messages: Sequence[Message]) -> int:
    """How many system messages open the history."""
    return next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))


def exchanges(messages: Sequence[Message]) -> list[Unit]:
    """The history after its opening system messages, parted before each user message."""
    units: list[list[int]] = []
    for index in range(system_head(messages), len(messages)):
        if not units or messages[index].role == "user":
            units.append([])
        units[-1].append(index)
    return [tuple(unit) for unit in units]


def ways(strategy: Strategy, messages: Sequence[Message]) -> list[Unit]:
    """What may stay: everything, then ever less, in the order in which the strategy lets units leave."""
    units = exchanges(messages)
    head: list[Unit] = [(index,) for index in range(system_head(messages))]
    if not units:  # nothing but system messages: the newest of them is what is asked
        head, units = [], head
    older = units[:-1]
    leaving = {
        "drop_oldest": [*head, *older],
        "keep_system": older,
        "summary": older,
        "drop_middle": [*older[1:], *older[:1]],
    }[strategy]
    found = []
    for gone in range(len(leaving) + 1):
        left = {index for unit in leaving[:gone] for index in unit}
        found.append(tuple(index for index in range(len(messages)) if index not in left))
    return found


def first_that_fits(kept: Sequence[Unit], tokens: Callable[[Unit], int], limit: int) -> int | None:
    """The index of the first way to keep that takes at most `limit` tokens, by halving; None where even the last does
    not.

    Less is taken to be shorter, which a template may break only where it writes a system prompt of its own in place of
    the one that left; the way that is found fits in any case.
    """
    found = bisect_left(range(len(kept)), True, key=lambda way: tokens(kept[way]) <= limit)
    return found if found < len(kept) else None
