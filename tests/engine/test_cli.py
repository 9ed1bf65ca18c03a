"""`python -m engine run`: the trace it writes, and what it says to bad input."""

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import engine.conversation
import engine.decode
import engine.model
from engine.__main__ import main
from engine.catalog import ModelError, load_catalog
from engine.conversation import Conversation
from engine.experiment import MAX_JSON_BYTES
from engine.trace_json import trace_from_json, trace_to_json
from tests.engine.models import tiny

MODEL = load_catalog().default
ROOT = Path(__file__).parent.parent.parent


def experiment(**fields) -> dict:
    return {
        "version": 1,
        "model": MODEL,
        "messages": [{"role": "user", "content": "What is seen?"}],
        "stop": {"max_new_tokens": 5},
        **fields,
    }


def test_the_trace_goes_to_the_file_and_progress_to_standard_error(on_tiny, write, tmp_path, capsys):
    out = tmp_path / "trace.json"
    assert main(["run", write(experiment()), "--out", str(out)]) == 0
    trace = trace_from_json(json.loads(out.read_text("utf-8")))
    conversation = Conversation(tiny("llama"), trace.experiment)
    while conversation.advance():
        pass
    assert [step.token_id for step in trace.steps(0)] == [step.token_id for step in conversation.trace.steps(0)]
    assert trace.stopped(0).reason == conversation.trace.stopped(0).reason
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1 + 1 + len(trace.steps(0)) + 1  # loading, prefill, tokens, the stop
    assert on_tiny == [(MODEL, "auto", "auto")]


def test_standard_input_to_standard_output_and_the_flags_reach_the_loader(on_tiny, monkeypatch, capsysbinary):
    other = next(name for name in load_catalog().loadable_ids if name != MODEL)
    stdin = io.BytesIO(json.dumps(experiment(messages=[{"role": "user", "content": "你好 👍🏽"}])).encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    assert main(["run", "-", "--model", other, "--device", "cpu", "--dtype", "float32"]) == 0
    trace = trace_from_json(json.loads(capsysbinary.readouterr().out.decode("utf-8")))
    assert trace.experiment.model == other
    assert "你好 👍🏽" in trace.rendered(0).text
    assert on_tiny == [(other, "cpu", "float32")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (experiment(sampling={"top_p": 2}), "sampling.top_p: Input should be less than or equal to 1, got 2"),
        (experiment(surprise=1), "surprise: unknown field"),
        (experiment(model="nobody/knows"), "model: unknown model 'nobody/knows'; allowed: "),
        (experiment(tools=["rm"]), "tools[0]: unknown tool 'rm'; allowed: calculator, clock, elements, units"),
        (experiment(stop={"stop_strings": ["x" * 5_000]}), "should have at most 200"),
        (b'{"version": 1, "sampling": {"temperature": NaN}, "model": "m", "prompt": "x"}', "sampling.temperature: "),
        (b"{not json", "not valid JSON: "),
        (b"[" * 100_000, "JSON"),
        (b"\xff\xfe\x00", "not valid JSON: "),
        (b"[]", "an experiment is a JSON object"),
        (b"x" * (MAX_JSON_BYTES + 1), "at most 1,000,000 bytes"),
        (experiment(model="a\nb\x1b[31m"), r"unknown model 'a\nb\x1b[31m'"),
    ],
)
def test_bad_input_is_exit_code_2_and_one_line(write, capsys, on_tiny, content, said):
    assert main(["run", write(content)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith("error: ")
    assert said in captured.err
    assert "\x1b" not in captured.err
    assert on_tiny == []


def test_files_that_cannot_be_read_or_written_are_named_before_the_model_is_loaded(write, tmp_path, capsys, on_tiny):
    assert main(["run", str(tmp_path / "missing.json")]) == 2
    assert "missing.json" in capsys.readouterr().err
    assert main(["run", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err
    assert main(["run", write(experiment()), "--out", str(tmp_path / "no" / "trace.json")]) == 2
    assert "trace.json" in capsys.readouterr().err
    assert on_tiny == []


def test_a_model_that_cannot_be_had_says_what_to_run(write, capsys, monkeypatch):
    def load(entry, **asked):
        raise ModelError("the model file is missing; run: make model")

    monkeypatch.setattr(engine.model, "load", load)
    assert main(["run", write(experiment())]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: the model file is missing; run: make model"


def test_an_unknown_model_flag_is_refused_with_the_models(write, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run", write(experiment()), "--model", "nobody"])
    assert stopped.value.code == 2
    assert MODEL in capsys.readouterr().err


def test_a_run_that_ends_in_an_error_writes_its_trace_says_why_and_exits_with_1(on_tiny, write, tmp_path, capsys):
    long = experiment(messages=[{"role": "user", "content": "word " * 5_000}])
    out = tmp_path / "trace.json"
    assert main(["run", write(long), "--out", str(out)]) == 1
    assert trace_from_json(json.loads(out.read_text("utf-8"))).stopped(0).reason == "error"
    assert "512" in capsys.readouterr().err.splitlines()[-1]  # the model's context


def test_ctrl_c_writes_the_trace_so_far(on_tiny, write, tmp_path, monkeypatch):
    advance = Conversation.advance

    def interrupted(conversation):
        if len(conversation.trace.steps(0)) == 2:
            raise KeyboardInterrupt
        return advance(conversation)

    monkeypatch.setattr(engine.conversation.Conversation, "advance", interrupted)
    out = tmp_path / "trace.json"
    assert main(["run", write(experiment()), "--out", str(out)]) == 130
    trace = trace_from_json(json.loads(out.read_text("utf-8")))
    assert len(trace.steps(0)) == 2
    assert trace.stopped(0).reason == "cancelled"


@pytest.mark.parametrize("turn", [0, 1])
def test_ctrl_c_while_a_turn_begins_writes_the_trace_so_far(on_tiny, write, tmp_path, monkeypatch, capsys, turn):
    fit = engine.conversation.fit

    def interrupted(loaded, trace, index, **asked):
        if index == turn:
            raise KeyboardInterrupt
        return fit(loaded, trace, index, **asked)

    monkeypatch.setattr(engine.conversation, "fit", interrupted)
    out = tmp_path / "trace.json"
    assert main(["run", write(experiment(follow_ups=["And then?"])), "--out", str(out)]) == 130
    trace = trace_from_json(json.loads(out.read_text("utf-8")))
    assert trace.turns == turn
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "interrupted"
    assert sum("stopped" in line for line in said) == turn


def test_ctrl_c_inside_a_forward_leaves_a_trace_that_holds_together(on_tiny, write, tmp_path, monkeypatch):
    step = engine.decode.Turn.step

    def interrupted(turn, *asked):
        found = step(turn, *asked)
        if len(turn.answer) == 3:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(engine.decode.Turn, "step", interrupted)
    out = tmp_path / "trace.json"
    assert main(["run", write(experiment()), "--out", str(out)]) == 130
    trace = trace_from_json(json.loads(out.read_text("utf-8")))
    assert len(trace.steps(0)) == trace.stopped(0).evidence["step"] == 2


@pytest.mark.parametrize("command", ["run", "record", "probe"])
def test_ctrl_c_while_the_model_loads_is_one_line_and_leaves_no_file(write, tmp_path, monkeypatch, capsys, command):
    def load(entry, **asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.model, "load", load)
    out = tmp_path / "out"
    asked = ["lens", write(experiment())] if command == "probe" else [write(experiment()), "--out", str(out)]
    assert main([command, *asked]) == 130
    assert capsys.readouterr().err.splitlines()[1:] == ["interrupted"]
    assert not out.exists()


def test_closed_standard_input_and_output_are_one_line(on_tiny, write, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["run", "-"]) == 2
    assert capsys.readouterr().err == "error: standard input is closed\n"
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["run", write(experiment())]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: standard output is closed"


def test_a_bad_experiment_is_told_without_importing_torch(write):
    code = (
        "import sys; from engine.__main__ import main; code = main(sys.argv[1:]); "
        "assert not {'torch', 'transformers'} & set(sys.modules); sys.exit(code)"
    )
    path = write(experiment(stop={"max_new_tokens": 0}))
    done = subprocess.run(
        [sys.executable, "-c", code, "run", path], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: stop.max_new_tokens: Input should be greater than or equal to 1, got 0\n"


def test_the_module_runs_as_a_command():
    command = [sys.executable, "-m", "engine", "run", "-"]
    done = subprocess.run(command, input="{}", capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: version: Field required\n"


def test_the_trace_as_json_reads_back_to_the_same_json(on_tiny, write, tmp_path):
    out = tmp_path / "trace.json"
    main(["run", write(experiment(sampling={"top_k": 5, "temperature": 0.7})), "--out", str(out)])
    data = json.loads(out.read_text("utf-8"))
    assert trace_to_json(trace_from_json(data)) == data
