"""Every strategy on the same chat, side by side."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from components.copy import words
from components.in_words import translated
from components.units import seconds_text
from components.visible import running_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.policy import Policy


def compare_value(policies: Sequence[Policy] | None, active: tuple[str, str], turn: int) -> dict[str, Any]:
    """One row a way; the one of the experiment is marked. Results about another turn are not shown."""
    say = words("context")
    if not policies or policies[0].turn != turn:
        return table.value([], [], caption=say.text("compare_empty"))
    columns = [
        Column(say.text("col_way")),
        Column(say.text("col_messages"), help=say.text("help_messages")),
        Column(say.text("col_prompt"), align="right"),
        Column(say.text("col_reused"), align="right", help=say.text("help_reused")),
        Column(say.text("col_computed"), align="right", help=say.text("help_computed")),
        Column(say.text("col_system")),
        Column(say.text("col_answer")),
        Column(say.text("col_time"), align="right"),
    ]
    rows = [_row(policy, (policy.strategy, policy.positions) == active) for policy in policies]
    first = policies[0]
    caption = say.text("compare_said", limit=first.limit, before=first.before, distinct=_answers(policies))
    return table.value(columns, rows, caption=caption)


def ranges(indices: Sequence[int], partly: Sequence[int] = ()) -> str:
    """0, 1, 2, 5 → "0–2 5"; a message of which only a part stays has a mark."""
    runs = []
    for _, members in groupby(enumerate(indices), key=lambda one: one[1] - one[0]):
        found = [index for _, index in members]
        runs.append(str(found[0]) if len(found) == 1 else f"{found[0]}–{found[-1]}")
    mark = f" ({', '.join(map(str, partly))}: ½)" if partly else ""
    return (" ".join(runs) or "–") + mark


def _row(policy: Policy, active: bool) -> list[Cell | str]:
    say = words("context")
    key = f"way:{policy.strategy}"
    way = say.text(f"{key}:{policy.positions}" if policy.strategy == "sliding_window" else key)
    name = Cell(way, tone="accent" if active else "")
    if policy.refusal is not None:
        return [name, "–", "–", "–", "–", "–", Cell(translated(policy.refusal), tone="warn"), ""]
    ended = "" if policy.ended else "…"
    text = (running_text(policy.answer) or say.text("no_answer")) + ended
    return [
        name,
        Cell(ranges(policy.kept, policy.partly), title=say.text("gone", messages=ranges(policy.dropped))),
        str(policy.after),
        str(policy.reused),
        Cell(str(policy.computed), bar=min(1.0, policy.computed / max(policy.before * 2, 1))),
        say.text(f"fate:{policy.system}"),
        Cell(text, title=say.text("with_summary", summary=policy.summary) if policy.summary else ""),
        seconds_text(policy.seconds),
    ]


def _answers(policies: Sequence[Policy]) -> int:
    return len({policy.token_ids for policy in policies if policy.refusal is None})
