"""The same question with the chat template and without: two answers side by side."""

from dataclasses import dataclass
from typing import Any

from components.copy import words
from components.ends import end_text
from components.visible import running_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.trace import StopReason, Trace


@dataclass(frozen=True)
class Answer:
    """One way of asking and what came of it. `ended` is the stop's reason, None while running."""

    prompt_tokens: int
    answer_tokens: int
    text: str
    ended: StopReason | None
    refused: bool = False  # it was not fed to the model


def answer_of(trace: Trace, turn: int) -> Answer:
    """What one run asked and answered in a turn."""
    rendered, stopped = trace.rendered(turn), trace.stopped(turn)
    return Answer(
        prompt_tokens=len(rendered.token_ids) if rendered else 0,
        answer_tokens=len(trace.steps(turn)),
        text=trace.answer(turn),
        ended=stopped.reason if stopped else None,
        refused=trace.unfed(turn),
    )


def compare_value(templated: Answer | None, raw: Answer | None) -> dict[str, Any]:
    """The same question asked both ways; with one of them missing, one row and what to do."""
    say = words("prompt")
    columns = [
        Column(say.text("col_way")),
        Column(say.text("col_prompt_tokens"), align="right"),
        Column(say.text("col_answer_tokens"), align="right"),
        Column(say.text("col_stopped")),
        Column(say.text("col_answer")),
    ]
    ways = (("with_template", templated), ("without_template", raw))
    rows = [_row(say.text(way), answer) for way, answer in ways if answer is not None]
    if raw is None:
        return table.value(columns, rows, caption=say.text("compare_empty"))
    if templated is None:
        return table.value(columns, rows, caption=say.text("compare_raw"))
    if templated.refused or raw.refused:
        verdict = say.text("one_refused")
    elif templated.ended is None:
        verdict = say.text("not_ended")
    else:
        verdict = say.text("same" if raw.text == templated.text else "different")
    more = templated.prompt_tokens - raw.prompt_tokens
    return table.value(columns, rows, caption=say.text("compare_said", more=more, verdict=verdict))


def _row(way: str, answer: Answer) -> list[Cell | str]:
    say = words("prompt")
    nothing = say.text("refused" if answer.refused else "no_answer") if answer.ended else ""
    text = running_text(answer.text) or nothing
    ended = end_text(answer.ended) if answer.ended else say.text("running")
    return [way, str(answer.prompt_tokens), str(answer.answer_tokens), ended, text]
