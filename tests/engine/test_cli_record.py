"""`python -m engine record`: a run and the inside of its steps in one file, every refusal exit code 2 and one line."""

import dataclasses

import pytest

import engine.commands.record
import engine.model
from engine.__main__ import main
from engine.answers.refusal import Refusal
from engine.conversation import Conversation
from engine.playback import Playback
from engine.probes.table import PROBES
from engine.record import record_from_bytes
from tests.engine.models import tiny
from tests.engine.test_cli import MODEL, experiment


@pytest.fixture
def named(monkeypatch):
    """A small model goes by the name of the one that is asked."""
    small = tiny("llama")
    loaded = dataclasses.replace(small, facts=dataclasses.replace(small.facts, model_id=MODEL))
    monkeypatch.setattr(engine.model, "load", lambda *_, **__: loaded)


@pytest.fixture
def kept(named, write, tmp_path):
    """The record that the command writes with these flags."""

    def run(*flags: str, **fields):
        asked = write(experiment(sampling={"do_sample": False}, **fields))
        out = tmp_path / "run.record.json.gz"
        assert main(["record", asked, "--out", str(out), *flags]) == 0
        return record_from_bytes(out.read_bytes())

    return run


def test_without_steps_there_are_the_run_and_the_model_s_parts(kept, capsys):
    record = kept()
    assert len(record.trace.steps(0)) == 5
    assert [one.probe for one in record.answers] == ["model"]
    assert capsys.readouterr().err.splitlines()[-1].endswith(" bytes, 1 answers")


def test_the_inside_of_chosen_steps_is_all_layers_and_all_heads_of_one(kept):
    record = kept("--steps", "0,2", "--layer", "1", "--head", "3", "--probes", "lens,attention,rotary")
    first, facts = record.trace.rendered(0).token_ids.size - 1, record.facts
    pairs = {
        (one.arguments["position"], one.arguments["layer"], one.arguments["head"])
        for one in record.answers
        if one.probe == "attention"
    }
    heads = {(1, head) for head in range(facts.heads)} | {(layer, 3) for layer in range(facts.layers)}
    assert pairs == {(first + step, *pair) for step in (0, 2) for pair in heads}
    assert sum(one.probe == "lens" for one in record.answers) == 2
    found = Playback(record).probe(5, "lens", position=first + 2)
    assert found.next_id == record.trace.steps(0)[2].token_id


def test_all_steps_and_what_a_model_has_not(kept):
    record = kept("--all-steps", "--probes", "residual,rotary")
    assert sum(one.probe == "residual" for one in record.answers) == 5
    assert not any(isinstance(one.result, Refusal) for one in record.answers)


def test_a_probe_that_refuses_leaves_the_others_and_the_run(kept):
    window = {"strategy": "sliding_window", "max_tokens": 8, "positions": "restart"}
    record = kept("--steps", "1", "--probes", "relative_phase,rotary,residual", context=window)
    assert len(record.trace.steps(0)) == 5
    results = {probe: [one.result for one in record.answers if one.probe == probe] for probe in ("residual", "rotary")}
    assert not any(isinstance(one, Refusal) for found in results.values() for one in found)
    assert [(one.position, one.told) for one in results["rotary"]] == [(8, 7)]
    refused = [one.result for one in record.answers if one.probe == "relative_phase"]
    assert refused
    assert all("window has moved" in one.reason for one in refused)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--steps", "x"], "--steps: numbers like 3,5 are wanted"),
        (["--steps", "1,5"], "steps: a turn here has at most 5 steps, counted from 0; no step 5"),
        (["--probes", "parity"], "probes: unknown here: 'parity'"),
        (["--layer", "30"], "layer: this model has layers 0 to 29"),
        (["--head", "-1"], "head: this model has heads 0 to 8"),
        (["--steps", "1", "--all-steps"], "not allowed with"),
    ],
)
def test_bad_flags_are_refused_in_one_line(on_tiny, write, tmp_path, capsys, flags, said):
    asked = write(experiment())
    try:
        code = main(["record", asked, "--out", str(tmp_path / "x"), *flags])
    except SystemExit as ended:
        code = ended.code
    line = capsys.readouterr().err.splitlines()[-1]
    assert code == 2
    assert line.startswith("error: ")
    assert said in line
    assert on_tiny == []  # before a model is loaded
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("before", [None, b"kept"])
def test_a_command_that_refuses_leaves_the_files_as_they_were(on_tiny, write, tmp_path, capsys, monkeypatch, before):
    out = tmp_path / "x"
    if before is not None:
        out.write_bytes(before)
    monkeypatch.setattr(engine.commands.record, "MAX_FILE_BYTES", 10)
    assert main(["record", write(experiment()), "--out", str(out)]) == 2
    assert "at most 10 can be" in capsys.readouterr().err
    assert (out.read_bytes() if out.exists() else None) == before


@pytest.mark.parametrize("made", [0, 1, 3])
def test_ctrl_c_in_a_run_leaves_a_record_of_what_there_is(named, write, tmp_path, monkeypatch, made):
    advance = Conversation.advance

    def interrupted(conversation):
        if len(conversation.trace.steps(0)) == made:
            raise KeyboardInterrupt
        return advance(conversation)

    monkeypatch.setattr(Conversation, "advance", interrupted)
    out = tmp_path / "x"
    asked = ["--steps", "0,2,4", "--probes", "lens"]
    assert main(["record", write(experiment()), "--out", str(out), *asked]) == 130
    record = record_from_bytes(out.read_bytes())
    assert len(record.trace.steps(0)) == made
    inside = [step for step in (0, 2, 4) if step < made]
    assert [one.probe for one in record.answers] == (["model"] + ["lens"] * len(inside) if made else [])


def test_ctrl_c_while_probes_are_asked_leaves_a_record_of_what_there_is(named, write, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setitem(PROBES, "residual", interrupted)
    out = tmp_path / "x"
    asked = ["--all-steps", "--probes", "lens,residual"]
    assert main(["record", write(experiment()), "--out", str(out), *asked]) == 130
    record = record_from_bytes(out.read_bytes())
    assert len(record.trace.steps(0)) == 5
    assert [one.probe for one in record.answers] == ["model", "lens"]
