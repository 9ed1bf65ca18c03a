import pytest
from pydantic import ValidationError

from engine.claims import Claim, find
from engine.lesson_paths import PathError
from tests.components.handmade import make_trace


def claim(**fields):
    return Claim.model_validate({"of": "trace", "at": "a"} | fields)


@pytest.mark.parametrize(
    ("fields", "holds", "fails"),
    [
        ({"is": 5}, [5, 5.0], [6, True, "5", None]),
        ({"is": True}, [True], [1, False]),
        ({"is": None}, [None], [0, ""]),
        ({"is": " Paris"}, [" Paris"], ["Paris", 1]),
        ({"is": 0.1}, [0.1, 0.10000000149], [0.1001]),
        ({"is": [1, 2]}, [[1, 2]], [[1], [2, 1], 1]),
        ({"about": 0.5, "within": 0.1}, [0.4, 0.6, 0.5], [0.39, 0.61, True, "0.5", None]),
        ({"about": 1}, [1.001], [1.002]),
        ({"at_least": 2}, [2, 3.5], [1.9, True, None]),
        ({"at_least": 2, "at_most": 3}, [2, 3], [1, 4]),
        ({"contains": "ari"}, ["Paris", ["ari"]], ["Rom", [1], 3]),
        ({"contains": 7}, [[1, 7]], [[1], "7"]),
    ],
)
def test_a_claim_holds_for_its_values_only(fields, holds, fails):
    for value in holds:
        assert claim(**fields).holds(value), value
    for value in fails:
        assert not claim(**fields).holds(value), value


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "say what it must be"),
        ({"is": 1, "about": 1}, "say it in one way"),
        ({"at_least": 1, "within": 1}, "'within' goes with 'about'"),
        ({"is": 1, "of": "claims", "at": "a"}, "two claims with"),
        ({"is": 1, "arguments": {"step": 1}}, "'arguments' are for a probe"),
        ({"is": 1, "at": "a b"}, "cannot be read"),
        ({"is": 1, "where": 2}, "Extra inputs"),
    ],
)
def test_a_claim_that_says_nothing_is_refused(fields, said):
    with pytest.raises(ValidationError, match=said):
        claim(**fields)


def test_claims_look_into_trace_and_probes_and_reckon_with_one_another():
    trace = make_trace()
    steps = len(trace.steps(0))
    claims = {
        "steps": claim(at="turns.0.steps.count", **{"is": steps}),
        "prompt": claim(at="turns.0.rendered.token_ids.count", at_least=1),
        "both": claim(of="claims", at="steps + prompt", at_least=steps + 1),
        "asked": claim(of="lens", arguments={"step": 1}, at="rank", **{"is": 3}),
        "wrong": claim(at="turns.0.answer", **{"is": "something else"}),
        "lost": claim(at="turns.9", **{"is": 1}),
        "of_the_lost": claim(of="claims", at="steps / lost", **{"is": 1}),
    }
    asked = []

    def ask(name, arguments):
        asked.append((name, dict(arguments)))
        return {"rank": 3}

    found = find(claims, trace, ask)
    assert asked == [("lens", {"step": 1})]
    assert [name for name, finding in found.items() if finding.holds] == ["steps", "prompt", "both", "asked"]
    assert found["both"].value == steps + len(trace.rendered(0).token_ids)
    assert found["wrong"].value == trace.answer(0)
    assert found["lost"].error == f"there is no item 9 in a list of {trace.turns}"
    assert "has no value" in found["of_the_lost"].error


def test_a_probe_that_gives_nothing_is_told_and_not_raised():
    def ask(name, arguments):
        raise PathError("no such answer")

    found = find({"a": claim(of="lens", at="x", **{"is": 1})}, make_trace(), ask)
    assert (found["a"].holds, found["a"].error) == (False, "no such answer")
