"""The endpoints /trace and /probe: an experiment in, JSON out, the same as the command line's; bad input: one line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gradio_client.exceptions import AppError

from engine.trace_json import trace_from_json
from tests.e2e.app_server import ONE_CORE, ROOT, call
from tests.e2e.conftest import AskProbe, RunTrace
from tests.e2e.experiments import answer, default_experiment, events


def test_the_answer_is_a_whole_trace(paris: dict[str, Any]) -> None:
    trace = trace_from_json(paris)
    assert trace.answer(0) == "The capital of France is Paris."
    assert [event["kind"] for event in paris["events"]] == ["rendered", "prefilled", *["stepped"] * 8, "stopped"]
    assert paris["events"][-1]["reason"] == "eos"


def test_the_command_line_gives_the_same_ids(paris: dict[str, Any], tmp_path: Path) -> None:
    asked, given = tmp_path / "experiment.json", tmp_path / "trace.json"
    asked.write_text(json.dumps(default_experiment()), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "engine", "run", str(asked), "--out", str(given)],
        cwd=ROOT,
        env=os.environ | ONE_CORE,
        check=True,
        capture_output=True,
    )
    trace = json.loads(given.read_text("utf-8"))
    ids = [[step["token_id"] for step in events(one, "stepped")] for one in (trace, paris)]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "no-such-model"}, "model: unknown model 'no-such-model'; allowed: "),
        ({"model": "gpt2"}, "model: 'gpt2' is not loaded; this program runs 'smollm2-135m-instruct'"),
        ({"tools": ["telephone"]}, "tools[0]: unknown tool 'telephone'; allowed: calculator, clock, elements, units"),
        ({"nonsense": 1}, "nonsense: unknown field"),
        ({"sampling": {"top_p": -0.1}}, "sampling.top_p: Input should be greater than or equal to 0, got -0.1"),
        ({"stop": {"stop_strings": ["s" * 5_000]}}, "stop.stop_strings[0]: "),
    ],
)
def test_a_bad_experiment_gives_one_clear_line(run_trace: RunTrace, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AppError) as refused:
        run_trace(default_experiment(**changes))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(app: str, number: float) -> None:
    name, data = call(app, default_experiment(sampling={"temperature": number}))
    assert name == "error"
    assert data["error"].startswith("sampling.temperature: Input should be a finite number")


def test_a_lone_surrogate_is_replaced_where_all_can_see(app: str) -> None:
    messages = [{"role": "user", "content": "a\ud800b"}]
    name, (trace,) = call(app, default_experiment(messages=messages, stop={"max_new_tokens": 2}))
    assert name == "complete"
    assert trace["experiment"]["messages"][0]["content"] == "a�b"
    assert "a�b" in events(trace, "rendered")[0]["text"]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        (
            {"messages": [{"role": "user", "content": "word " * 9_000}]},
            "messages",
            "9031 tokens, the model's context holds 8192",
        ),
        ({"prompt": "", "messages": None}, "prompt", "write something"),
        ({"grammar": {"kind": "lark", "source": "start: nothing"}}, "grammar.source", "nothing"),
        ({"forced": [{"step": 0, "token_id": 49_152}]}, "forced", "token ids of this model go up to 49151, got 49152"),
    ],
)
def test_what_shows_only_at_work_ends_the_trace_with_its_reason(
    run_trace: RunTrace, changes: dict[str, Any], field: str, said: str
) -> None:
    stopped = run_trace(default_experiment(**changes))["events"][-1]
    assert stopped["reason"] == "error"
    assert stopped["evidence"]["field"].startswith(field)
    assert said in stopped["evidence"]["message"]
    assert stopped["said"]["message"]["text"] == stopped["evidence"]["message"]


def test_follow_ups_are_turns_of_one_trace(run_trace: RunTrace) -> None:
    trace = run_trace(default_experiment(follow_ups=["And of Spain?"]))
    assert answer(trace, 0) == "The capital of France is Paris."
    assert events(trace, "rendered", 1)[0]["reused"] == 44
    assert events(trace, "stopped", 1)


def test_a_probe_of_an_experiment_and_of_its_trace(ask_probe: AskProbe, paris: dict[str, Any]) -> None:
    chosen = events(paris, "stepped")[5]
    for source in (default_experiment(), paris):
        found = ask_probe(source, "lens", {"step": 5})
        assert found["arguments"] == {"turn": 0, "position": chosen["position"] - 1}
        lens = found["result"]
        column = lens["token_ids"].index(chosen["token_id"])
        assert lens["token_bytes"][column]["bytes"] == chosen["token_bytes"]
        assert lens["ranks"][-1][column] == 1
        followed = chosen["candidate_ids"].index(chosen["token_id"])
        assert lens["logits"][-1][column] == pytest.approx(chosen["logits"][0][followed], abs=1e-3)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("lenz", {}, "probe: unknown probe 'lenz'; known: "),
        ("attention", {"layer": 30}, "layer: this model has layers 0 to 29, there is no layer 30"),
        ("lens", {"head": 0}, "head: unknown argument; lens takes turn, position, token_ids, query, step"),
        ("lens", {"step": 9}, "step: turn 0 has steps 0 to 8 (the next one), there is no step 9"),
        ("lens", {"step": 1, "position": 1}, "step: a step stands for a position"),
        ("lens", {"position": -1}, "position: the turn has positions 0 to "),
        ("lens", None, "arguments: an object"),
    ],
)
def test_a_bad_question_gives_one_clear_line(
    ask_probe: AskProbe, paris: dict[str, Any], name: str, arguments: Any, said: str
) -> None:
    with pytest.raises(AppError) as refused:
        ask_probe(paris, name, arguments)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_answer_beyond_the_limit_is_refused(ask_probe: AskProbe) -> None:
    long = default_experiment(prompt="word " * 600, messages=None, stop={"max_new_tokens": 1})
    with pytest.raises(AppError, match="at most 278,528 are given; ask for fewer positions"):
        ask_probe(long, "attention_matrix", {"layer": 0, "head": 0})
    smaller = ask_probe(long, "attention_matrix", {"layer": 0, "head": 0, "position": 99})
    assert len(smaller["result"]["weights"]) == 100
