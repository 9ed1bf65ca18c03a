"""`python -m engine probe`: the answer on standard output, every refusal exit code 2 and one line."""

import json
import subprocess
import sys

import pytest

import engine.model
from engine.__main__ import main
from engine.asking import answer
from engine.catalog import load_catalog
from engine.probe_json import answer_to_json
from engine.probes.table import PROBES
from tests.engine.conversations import finish
from tests.engine.models import tiny
from tests.engine.test_cli import MODEL, ROOT, experiment


@pytest.fixture
def given(write):
    return write(experiment(sampling={"do_sample": False}))


def asked(capsys, *arguments: str) -> dict:
    assert main(["probe", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def expected(name: str, **arguments) -> dict:
    from engine.conversation import Conversation
    from engine.experiment import Experiment

    conversation = Conversation(tiny("llama"), Experiment.model_validate(experiment(sampling={"do_sample": False})))
    finish(conversation)
    placed, result = answer(PROBES, conversation, name, arguments)
    return json.loads(json.dumps(answer_to_json(name, "tiny", placed, result, max_values=10**6)))


@pytest.mark.parametrize(
    ("name", "flags", "arguments"),
    [
        ("lens", ["--step", "2"], {"step": 2}),
        ("lens", ["--position", "3", "--set", "query=the"], {"position": 3, "query": "the"}),
        ("lens", ["--step", "0", "--set", "token_ids=[7]"], {"step": 0, "token_ids": [7]}),
        ("attention", ["--turn", "0", "--layer", "1", "--head", "3"], {"turn": 0, "layer": 1, "head": 3}),
        ("lens_map", ["--set", "count=3"], {"count": 3}),
        ("residual", [], {}),
    ],
)  # fmt: skip
def test_the_answer_is_the_probe_s(on_tiny, given, capsys, name, flags, arguments):
    assert asked(capsys, name, given, *flags) == expected(name, **arguments)
    assert on_tiny == [(MODEL, "auto", "auto")]


def test_a_trace_s_ids_are_fed_and_nothing_is_drawn(on_tiny, given, tmp_path, capsys, monkeypatch):
    trace = tmp_path / "trace.json"
    assert main(["run", given, "--out", str(trace)]) == 0
    ours = expected("residual", step=1)
    monkeypatch.setattr("engine.decode.Turn.step", None)
    found = asked(capsys, "residual", str(trace), "--step", "1")
    assert found["arguments"] == ours["arguments"]
    assert found["result"]["target_id"] == ours["result"]["target_id"]
    assert found["result"]["norms"] == pytest.approx(ours["result"]["norms"], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lenz"], "probe: unknown probe 'lenz'; known: arithmetic, "),
        (["lens", "--layer", "1"], "layer: unknown argument; lens takes turn, position, token_ids, query, step"),
        (["attention", "--layer", "30"], "layer: this model has layers 0 to 29, there is no layer 30"),
        (["attention", "--head", "-1"], "head: this model has heads 0 to 8, there is no head -1"),
        (["attention", "--layer", "5"], "layer: this model has layers 0 to 1, there is no layer 5"),
        (["attention_matrix", "--head", "0"], "layer: attention_matrix needs it; attention_matrix takes turn, "),
        (["lens", "--step", "0", "--position", "0"], "step: a step stands for a position: give one of "),
        (["lens", "--step", "99"], "step: turn 0 has steps 0 to "),
        (["lens", "--position", "99"], "position: the turn has positions 0 to "),
        (["lens", "--turn", "1"], "turn: this run has turns 0 to 0, there is no turn 1"),
        (["lens", "--set", "query"], "--set: ARGUMENT=VALUE is wanted, got 'query'"),
        (["lens", "--set", "token_ids=1,2"], "token_ids: not valid JSON"),
        (["lens", "--set", "token_ids=[1.5]"], "token_ids: "),
        (["lens", "--set", "a\nb=1"], r"unknown argument; lens takes"),
    ],
)
def test_names_and_ranges_that_are_wrong_are_one_line_and_exit_code_2(on_tiny, given, capsys, arguments, said):
    name, *rest = arguments
    assert main(["probe", name, given, *rest]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    refusals = [line for line in captured.err.splitlines() if line.startswith("error: ")]
    assert refusals == captured.err.splitlines()[-1:]
    assert said in refusals[0]


@pytest.mark.parametrize("flag", [["--layer", "x"], ["--surprise"], ["--model", "nobody"]])
def test_flags_that_are_wrong_are_one_line_too(given, capsys, flag):
    with pytest.raises(SystemExit) as stopped:
        main(["probe", "lens", given, *flag])
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (experiment(sampling={"top_p": 2}), "sampling.top_p: "),
        (b"{not json", "not valid JSON: "),
        (b"[" * 100_000, "JSON"),
        (b"[]", "an experiment is a JSON object"),
        ({"events": []}, "error: experiment.version: Field required"),
        (
            {"version": 1, "experiment": experiment(), "events": [{}], "facts": {}, "versions": {}},
            "facts.model_id: this field is missing",
        ),
    ],
)
def test_bad_sources_are_one_line(on_tiny, write, capsys, content, said):
    assert main(["probe", "lens", write(content)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert on_tiny == []


def test_a_run_that_ended_in_an_error_says_why_and_exits_with_1(on_tiny, write, capsys):
    long = write(experiment(messages=[{"role": "user", "content": "word " * 5_000}]))
    assert main(["probe", "lens", long]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "512" in captured.err.splitlines()[-1]


def test_a_model_whose_parts_cannot_be_seen_says_so(monkeypatch, given, capsys):
    monkeypatch.setattr(engine.model, "load", lambda entry, **asked: tiny("hybrid"))
    assert main(["probe", "lens", given]) == 2
    assert "has no attention of layer 0 that can be found" in capsys.readouterr().err.splitlines()[-1]


def test_another_model_may_be_asked(on_tiny, given, capsys):
    other = next(name for name in load_catalog().loadable_ids if name != MODEL)
    asked(capsys, "residual", given, "--model", other, "--device", "cpu", "--dtype", "float32")
    assert on_tiny == [(other, "cpu", "float32")]


def test_a_bad_source_is_told_without_importing_torch(write):
    code = (
        "import sys; from engine.__main__ import main; code = main(sys.argv[1:]); "
        "assert not {'torch', 'transformers'} & set(sys.modules); sys.exit(code)"
    )
    path = write({"events": [], "experiment": {"version": 2}})
    done = subprocess.run(
        [sys.executable, "-c", code, "probe", "lens", path], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
