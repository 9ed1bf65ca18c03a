import pytest

from engine.lesson_paths import PathError, check, look

RUN = {
    "turns": [{"steps": [{"step": 0, "token_bytes": {"text": " a", "bytes": [32, 97]}}, {"step": 1, "done": True}]}],
    "ranks": [[9, 1], [3, 5], [1, 2]],
    "none": None,
    "count": 7,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("turns.0.steps.1.step", 1),
        ("turns.-1.steps[step=0].token_bytes.text", " a"),
        ("turns.0.steps[token_bytes= a].step", 0),
        ("turns.0.steps[done=true].step", 1),
        ("ranks[each 0]", [9, 3, 1]),
        ("ranks[each 0][=1]", 2),
        ("turns.0.steps[each step].max", 1),
        ("ranks.0.sum", 10),
        ("ranks.1.mean", 4),
        ("ranks.1.min", 3),
        ("ranks[each 1].where_max", 1),
        ("ranks[each 1].where_min", 0),
        ("ranks.count", 3),
        ("count", 7),
        ("none", None),
    ],
)
def test_a_path_leads_to_its_value(path, found):
    assert look(RUN, path) == found


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("turn", "there is no 'turn'; there is: turns, ranks, none, count"),
        ("ranks.3", "no item 3 in a list of 3"),
        ("ranks.first", "a number is wanted, or: count, sum, mean"),
        ("count.x", "has no parts"),
        ("ranks[each 0][=4]", "none of the 3 items is 4"),
        ("turns.0.steps[step=9]", "no item of the 2 has step=9"),
        ("count[=1]", "is asked of what is no list"),
        ("turns.0.steps.max", "wants a list of numbers"),
        ("ranks..0", "cannot be read from '.0' on"),
        ("ranks[0]", "cannot be read from"),
        ("__import__('os')", "cannot be read from"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_there_is(path, said):
    with pytest.raises(PathError) as caught:
        look(RUN, path)
    assert said in str(caught.value)


def test_a_path_can_be_checked_without_a_run():
    check("turns.0.steps[step=0]")
    with pytest.raises(PathError):
        check("a b")
