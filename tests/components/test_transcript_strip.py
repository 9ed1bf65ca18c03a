"""The conversation and the timeline: every token once, in order, half characters where they belong."""

from dataclasses import replace

from components.panel import Cursor, View
from components.transcript_strip import FIRST, LAST, conversation, flowing, positions_left_out, timeline
from engine.trace import Stepped, Stopped, Trace


def view(trace: Trace) -> View:
    return View(facts=trace.facts, trace=trace, cursor=Cursor())


def test_the_timeline_has_every_position_once(paris: Trace) -> None:
    chips = timeline(view(paris))[0].chips
    prompt = len(paris.rendered(0).token_ids)
    assert [chip.position for chip in chips] == list(range(prompt + len(paris.steps(0))))
    assert [chip.state for chip in chips] == ["computed"] * prompt + ["sampled"] * len(paris.steps(0))


def test_messages_read_as_they_were_written(paris: Trace) -> None:
    groups = conversation(view(paris))
    rendered = paris.rendered(0)
    contents = [rendered.text[span.start : span.end] for span in rendered.spans if span.kind == "content"]
    assert ["".join(chip.text for chip in group.chips) for group in groups] == [*contents, paris.answer(0)]
    assert groups[0].label == "system · added by the template"
    assert [group.role for group in groups] == ["system", "user", "assistant"]


def test_what_is_held_back_is_not_in_the_conversation(paris: Trace) -> None:
    """Steps 4 and 5 (" is", " Paris") as a stop string would have them: one space shown, the rest never."""
    shown = {4: " ", 5: "", 6: "", 7: ""}
    events = tuple(
        replace(event, text=shown.get(event.step, event.text)) if isinstance(event, Stepped) else event
        for event in paris.events
    )
    answer = conversation(view(replace(paris, events=events)))[-1]
    assert "".join(chip.text for chip in answer.chips) == "The capital of France "
    assert [chip.position for chip in answer.chips] == [37, 38, 39, 40, 41]


def test_what_was_held_back_and_proved_harmless_comes_with_the_end(paris: Trace) -> None:
    texts = {6: ""}
    events = tuple(
        replace(event, text=texts.get(event.step, event.text))
        if isinstance(event, Stepped)
        else replace(event, text=".")
        if isinstance(event, Stopped)
        else event
        for event in paris.events
    )
    answer = conversation(view(replace(paris, events=events)))[-1]
    assert "".join(chip.text for chip in answer.chips) == paris.answer(0)
    assert answer.chips[-1].position == paris.steps(0)[-1].position


def test_a_character_belongs_to_the_token_that_completes_it() -> None:
    circled_one = "①".encode()
    assert flowing([circled_one[:2], circled_one[2:] + b"x", b" y"]) == ["", "①x", " y"]


def test_bytes_that_never_become_a_character_show_as_a_decoder_shows_them() -> None:
    assert flowing([b"a", b"\xe2\x91"]) == ["a", "\ufffd"]
    assert flowing([]) == []


def long(paris: Trace, times: int) -> Trace:
    """The trace with its user message's tokens many times over."""
    rendered = paris.rendered(0)
    span = next(i for i, one in enumerate(rendered.spans) if one.kind == "content" and one.role == "user")
    places = (rendered.span_index == span).nonzero()[0]
    order = [*range(places[0]), *([*places] * times), *range(places[-1] + 1, len(rendered.token_ids))]
    more = replace(
        rendered,
        token_ids=rendered.token_ids[order],
        span_index=rendered.span_index[order],
        token_bytes=tuple(rendered.token_bytes[place] for place in order),
    )
    return replace(paris, events=(more, *paris.events[1:]))


def test_of_a_long_context_the_timeline_shows_both_ends_and_counts_the_rest(paris: Trace) -> None:
    trace = long(paris, 1_000)
    count = len(trace.rendered(0).token_ids)
    chips = timeline(view(trace))[0].chips
    assert len(chips) == FIRST + 1 + LAST + len(trace.steps(0))
    assert chips[FIRST].text == f"… {count - FIRST - LAST:,} tokens …"
    assert [chip.position for chip in chips[:FIRST]] == list(range(FIRST))
    assert [chip.position for chip in chips[FIRST + 1 : FIRST + 1 + LAST]] == list(range(count - LAST, count))


def test_a_long_message_is_whole_in_the_conversation(paris: Trace) -> None:
    trace = long(paris, 1_000)
    message = conversation(view(trace))[1]
    assert "".join(chip.text for chip in message.chips) == "What is the capital of France?" * 1_000
    assert len(message.chips) < FIRST + LAST + 1


def test_a_context_that_just_fits_has_every_token(paris: Trace) -> None:
    rendered = long(paris, 1_000).rendered(0)
    fits = replace(rendered, token_ids=rendered.token_ids[: FIRST + LAST])
    assert not positions_left_out(fits)
    assert len(positions_left_out(replace(rendered, token_ids=rendered.token_ids[: FIRST + LAST + 1]))) == 1
