"""The left pane's two strips: the conversation as running text, and the timeline with every token as a chip."""

import codecs
from collections.abc import Iterable, Sequence
from itertools import groupby

from components.copy import words
from components.panel import View
from components.visible import visible_bytes
from components.widgets.token_strip import Chip, Group
from engine.experiment import Experiment
from engine.trace import Rendered, Stepped, Stopped

#: Positions at either end of a long context that are a chip of their own. A message of 200,000 characters can be as
#: many tokens: a chip each would take the server most of a minute at every frame.
FIRST, LAST = 256, 1_792


def conversation(view: View) -> list[Group]:
    """One group a message, its tokens as running text; the answer of the selected turn grows at the end."""
    rendered = view.rendered
    if rendered is None:
        return _planned(view.trace.experiment) if view.trace is not None else []
    groups = [_message(rendered, index) for index, span in enumerate(rendered.spans) if span.kind == "content"]
    if view.steps and view.trace is not None:
        groups.append(_answer(view.steps, view.trace.stopped(view.cursor.turn)))
    return groups


def timeline(view: View) -> list[Group]:
    """All positions of the selected turn in order: the context, then the sampled tokens."""
    rendered = view.rendered
    if rendered is None:
        return []
    left_out = positions_left_out(rendered)
    chips = [_context_chip(rendered, position) for position in range(left_out.start)]
    if left_out:
        said = words("page").text("left_out", count=len(left_out))
        chips.append(Chip(text=said, position=-1, title=_title_of_many(left_out)))
    chips += [_context_chip(rendered, position) for position in range(left_out.stop, len(rendered.token_ids))]
    chips += step_chips(view.steps)
    return [Group(chips=chips)]


def step_chips(steps: Iterable[Stepped]) -> list[Chip]:
    """A chip for each chosen token."""
    return [_step_chip(step) for step in steps]


def positions_left_out(rendered: Rendered) -> range:
    """The middle of a context that is too long for a chip a token; empty, at its end, for any other."""
    count = len(rendered.token_ids)
    return range(FIRST, count - LAST) if count > FIRST + LAST else range(count, count)


def position_role(rendered: Rendered, position: int) -> str:
    """The colour of a context position: its message's role, or scaffold."""
    index = int(rendered.span_index[position])
    if index < 0 or rendered.spans[index].kind == "scaffold":
        return "scaffold"
    return rendered.spans[index].role


def flowing(pieces: Iterable[bytes]) -> list[str]:
    """Each token's text in running text: a character belongs to the token that completes it.

    Bytes that never become a character show as U+FFFD at the end, as any decoder would show them.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [decoder.decode(piece) for piece in pieces]
    if texts:
        texts[-1] += decoder.decode(b"", final=True)
    return texts


def _planned(experiment: Experiment) -> list[Group]:
    """What was asked for and not rendered yet: the messages as they are, without tokens or positions."""
    messages = [(str(message.role), str(message.role), message.content) for message in experiment.messages or ()]
    messages += [("user", "user", experiment.prompt)] if experiment.prompt is not None else []
    later = words("sharing").text("to_follow")
    messages += [(later, "user", text) for text in experiment.follow_ups]
    return [_text_group([Chip(text=text, position=-1, role=role)], label, role) for label, role, text in messages]


def _message(rendered: Rendered, index: int) -> Group:
    say = words("page")
    span = rendered.spans[index]
    positions = [int(p) for p in (rendered.span_index == index).nonzero()[0]]
    texts = flowing(rendered.token_bytes[p] for p in positions)
    left_out = positions_left_out(rendered)
    chips = []
    # What is left out of the timeline is still text to be read: in one piece.
    for key, members in groupby(
        zip(positions, texts, strict=True), key=lambda one: -1 if one[0] in left_out else one[0]
    ):
        (first, text), *others = members
        chips.append(
            Chip(
                text=text + "".join(more for _, more in others),
                position=first,
                role=span.role,
                state=_state(rendered, first),
                title=_title_of_many(left_out) if key < 0 else _title(first, int(rendered.token_ids[first])),
            )
        )
    label = say.text("added_by_template", role=span.role) if span.message is None else span.role
    return _text_group(chips, label, span.role)


def _answer(steps: Sequence[Stepped], stopped: Stopped | None) -> Group:
    """The text that was shown, each part on the token that released it; what is held back has no place in it."""
    texts = [step.text for step in steps]
    texts[-1] += stopped.text if stopped else ""
    chips = [
        Chip(text=text, position=step.position, role="assistant", state=_step_state(step), title=_step_title(step))
        for step, text in zip(steps, texts, strict=True)
    ]
    label = words("page").text("answer_ended" if stopped else "answer", count=len(steps))
    return _text_group(chips, label, "assistant")


def _text_group(chips: Sequence[Chip], label: str, role: str) -> Group:
    """Running text: a token that completes no character yet, or is a control mark, has no place in it."""
    return Group(chips=[chip for chip in chips if chip.text], label=label, role=role, as_text=True)


def _context_chip(rendered: Rendered, position: int) -> Chip:
    return Chip(
        text=visible_bytes(rendered.token_bytes[position]),
        position=position,
        role=position_role(rendered, position),
        state=_state(rendered, position),
        title=_title(position, int(rendered.token_ids[position])),
    )


def _step_chip(step: Stepped) -> Chip:
    return Chip(
        text=visible_bytes(step.token_bytes),
        position=step.position,
        role="scaffold" if step.special else "assistant",
        state=_step_state(step),
        title=_step_title(step),
    )


def _state(rendered: Rendered, position: int) -> str:
    return "reused" if position < rendered.reused else "computed"


def _step_state(step: Stepped) -> str:
    if step.forced:
        return "forced"
    return "grammar" if grammar_forced(step) else "sampled"


def grammar_forced(step: Stepped) -> bool:
    """True where the grammar left one legal token."""
    return any(stage.name == "grammar" and stage.parameters.get("legal") == 1 for stage in step.stages)


def _title(position: int, token_id: int) -> str:
    return words("page").text("chip", position=position, id=token_id)


def _title_of_many(positions: range) -> str:
    return words("page").text("left_out_positions", first=positions.start, last=positions.stop - 1)


def _step_title(step: Stepped) -> str:
    say = words("page")
    title = say.text("step_chip", position=step.position, id=step.token_id, step=step.step)
    return f"{title} · {say.text('grammar_forced')}" if grammar_forced(step) else title
