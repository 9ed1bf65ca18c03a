"""What the panels that look inside the model share: which position they look at, and what is in the way."""

from typing import Any

from components.copy import words
from components.in_words import in_words
from components.panel import View
from components.visible import visible_bytes
from engine.experiment import ExperimentError
from engine.refusals import Refused


def newest(view: View, name: str) -> Any:
    """The answer of a probe of one position, where it is at hand and about the position in sight; else None."""
    found = view.results.get(name)
    if found is None or (found.turn, found.position) != (view.cursor.turn, view.fed_position):
        return None
    return found


def of_turn(view: View, name: str) -> Any:
    """The answer of a probe of a turn, where it is at hand and about the turn in sight; else None."""
    found = view.results.get(name)
    return found if found is not None and found.turn == view.cursor.turn else None


def ask(view: View, name: str, **arguments: Any) -> Any:
    """What the probe of that name says of the position in sight, or in words why it cannot."""
    assert view.probe is not None
    try:
        return view.probe(name, turn=view.cursor.turn, position=view.fed_position, **arguments)
    except (ExperimentError, Refused) as refused:
        return in_words(refused)


def unavailable(view: View) -> str | None:
    """Why the inside cannot be shown: the turn was not computed (yet, or at all), or no model is loaded."""
    if view.trace is None or view.trace.prefilled(view.cursor.turn) is None:
        return words("page").text("inside_not_yet")
    return words("page").text("inside_no_model") if view.probe is None else None


def where(view: View) -> str:
    """The position in sight and its token, and what comes next there."""
    say, position = words("page"), view.fed_position
    assert position is not None
    token = bytes_at(view, position)
    following = bytes_at(view, position + 1)
    if following is None:
        return say.text("inside_last", position=position, token=visible_bytes(token or b""))
    return say.text(
        "inside_where", position=position, token=visible_bytes(token or b""), following=visible_bytes(following)
    )


def bytes_at(view: View, position: int) -> bytes | None:
    """The bytes of the token at a position of the selected turn; None beyond its end."""
    prompt = view.rendered.token_bytes if view.rendered else ()
    if position < len(prompt):
        return prompt[position]
    answer = view.steps[position - len(prompt) :]
    return answer[0].token_bytes if answer else None


def cursor_at(view: View, position: int) -> int:
    """Where the cursor must stand for `position` to be the one in sight: on the token that was chosen there, if any."""
    prompt = len(view.rendered.token_bytes) if view.rendered else 0
    following = position + 1
    return following if prompt <= following < prompt + len(view.steps) else position


def key_at(view: View, position: int) -> dict[str, int]:
    """What a click on a position of the turn sends; nothing for one that was never fed, which cannot be in sight."""
    length = (len(view.rendered.token_bytes) if view.rendered else 0) + len(view.steps)
    newest = length - 1 if view.steps else length  # the last token that was chosen is fed with the next step
    return {"position": cursor_at(view, position)} if 0 <= position < newest else {}


def row_label(row: int, last: int) -> str:
    """Row 0 of the stream enters the first layer, the last one is what the final norm reads."""
    if row == 0:
        return words("page").text("row_first")
    return words("page").text("row_last", row=row) if row == last else str(row)
