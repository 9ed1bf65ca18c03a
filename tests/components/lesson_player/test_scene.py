import pytest

from components.lesson_player.scene import cursor, tokens_made
from engine.lessons import LessonError, Place
from tests.components.handmade import make_trace


def place(**fields):
    return Place.model_validate(fields)


def test_a_note_looks_at_the_end_of_its_turn_or_at_what_was_made():
    trace = make_trace()
    steps = len(trace.steps(0))
    assert tokens_made(trace, place()) == steps
    assert [tokens_made(trace, place(made=made)) for made in (0, 1, steps)] == [0, 1, steps]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"turn": 4}, "cursor.turn: there is no turn 4; the run has turns 0 to 0"),
        ({"made": 99}, "cursor.made: 99 tokens are asked for; turn 0 has"),
    ],
)
def test_what_the_run_does_not_have_is_told(fields, said):
    with pytest.raises(LessonError, match=said):
        tokens_made(make_trace(), place(**fields))


def test_a_step_is_the_position_of_its_token():
    trace = make_trace()
    prompt = len(trace.rendered(0).token_ids)
    assert cursor(trace, place(step=1, layer=1, head=1, figure="entropy", query="a")).position == prompt + 1
    assert cursor(trace, place(position=2)).position == 2
    assert cursor(trace, place()).position is None
    found = cursor(trace, place(layer=1, head=1, figure="entropy", operation="scores", query="a", formula="b"))
    assert (found.layer, found.head, found.figure, found.operation, found.query, found.formula) == (
        *(1, 1, "entropy", "scores", "a", "b"),
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"step": 99}, "cursor.step: there is no step 99"),
        ({"position": 999}, "cursor.position: there is no position 999"),
        ({"layer": 99}, "cursor.layer: there is no layer 99; this model has layers 0 to"),
        ({"head": 99}, "cursor.head: there is no head 99"),
        ({"figure": "size"}, "cursor.figure: unknown 'size'; known: on_first"),
        ({"operation": "magic"}, "cursor.operation: unknown 'magic'; known: attention_norm"),
    ],
)
def test_a_cursor_on_nothing_is_told(fields, said):
    with pytest.raises(LessonError, match=said):
        cursor(make_trace(), place(**fields))
