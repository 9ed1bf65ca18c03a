"""Which messages stay, against lists made by hand."""

import pytest

from engine.context.choose import exchanges, first_that_fits, system_head, ways
from engine.experiment import Message
from tests.engine.context.chats import said


def messages(*texts: str) -> list[Message]:
    return [Message(**message) for message in said(*texts)]  # type: ignore[arg-type]


PLAIN = messages("s be kind", "u 1", "a 2", "u 3", "a 4", "u 5")
#: The first question is answered after two calls of a tool.
TOOLS = messages("u 0", "a call", "t result", "a call", "t result", "a 5", "u 6", "a call", "t result")


@pytest.mark.parametrize(
    ("strategy", "stays"),
    [
        ("drop_oldest", [(0, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (3, 4, 5), (5,)]),
        ("keep_system", [(0, 1, 2, 3, 4, 5), (0, 3, 4, 5), (0, 5)]),
        ("summary", [(0, 1, 2, 3, 4, 5), (0, 3, 4, 5), (0, 5)]),
        ("drop_middle", [(0, 1, 2, 3, 4, 5), (0, 1, 2, 5), (0, 5)]),
    ],
)
def test_whole_exchanges_leave_in_the_strategy_s_order(strategy: str, stays: list[tuple[int, ...]]) -> None:
    assert ways(strategy, PLAIN) == stays  # type: ignore[arg-type]


def test_the_middle_leaves_from_its_oldest_and_the_beginning_last() -> None:
    chat = messages("u 0", "a 1", "u 2", "a 3", "u 4", "a 5", "u 6")
    assert ways("drop_middle", chat) == [(0, 1, 2, 3, 4, 5, 6), (0, 1, 4, 5, 6), (0, 1, 6), (6,)]


@pytest.mark.parametrize("strategy", ["drop_oldest", "keep_system", "drop_middle", "summary"])
def test_a_tool_call_and_its_results_stay_or_go_together(strategy: str) -> None:
    assert ways(strategy, TOOLS) == [tuple(range(9)), (6, 7, 8)]  # type: ignore[arg-type]


def test_a_greeting_of_the_assistant_goes_by_itself() -> None:
    chat = messages("s s", "a hello", "u 2", "a 3", "u 4")
    assert exchanges(chat) == [(1,), (2, 3), (4,)]
    assert ways("keep_system", chat)[1:] == [(0, 2, 3, 4), (0, 4)]


def test_several_system_messages_open_a_history_and_a_later_one_belongs_to_its_exchange() -> None:
    chat = messages("s s", "s t", "u 2", "s late", "a 4", "u 5")
    assert system_head(chat) == 2
    assert exchanges(chat) == [(2, 3, 4), (5,)]
    assert ways("drop_oldest", chat)[1:3] == [(1, 2, 3, 4, 5), (2, 3, 4, 5)]


def test_of_nothing_but_system_messages_the_newest_stays() -> None:
    chat = messages("s s", "s t")
    assert ways("drop_oldest", chat) == [(0, 1), (1,)]
    assert ways("keep_system", chat) == [(0, 1), (1,)]


def test_the_first_way_that_fits_is_taken() -> None:
    kept = ways("keep_system", messages(*[f"u {n}" for n in range(100)]))
    asked: list[int] = []

    def tokens(way: tuple[int, ...]) -> int:
        asked.append(len(way))
        return 10 * len(way)

    found = first_that_fits(kept, tokens, 345)
    assert found is not None
    assert len(kept[found]) == 34
    assert len(asked) <= 8
    assert first_that_fits(kept, tokens, 9) is None
    assert first_that_fits(kept, tokens, 10_000) == 0
