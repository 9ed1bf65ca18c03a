import argparse
from dataclasses import fields

import pytest

from engine.settings import Settings


def parse(*arguments, names=(), environment={}) -> Settings:  # noqa: B006 - it is only read
    parser = argparse.ArgumentParser()
    Settings.add_flags(parser, *names)
    return Settings.from_flags(parser.parse_args(arguments), environment)


def test_no_flags_give_the_defaults():
    assert parse() == Settings()


def test_every_field_is_a_flag_with_a_help_text_and_its_default():
    parser = argparse.ArgumentParser(
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=60, width=500)
    )
    Settings.add_flags(parser)
    text = parser.format_help()
    for item in fields(Settings):
        line = next(line for line in text.splitlines() if line.strip().startswith(f"--{item.name.replace('_', '-')} "))
        assert item.metadata["help"] in line
        assert not item.default or f"(default: {item.default})" in line


def test_flags_are_read_by_their_types():
    settings = parse("--model", "gpt2", "--max-new-tokens", "8", "--run-seconds", "1.5", "--device", "cpu")
    assert settings == Settings(model="gpt2", max_new_tokens=8, run_seconds=1.5, device="cpu")


def test_switches_and_lists_are_flags_too():
    settings = parse("--offload", "--models", "a, b", "--add-model", "x=./y", "--add-model", "org/name")
    assert settings == Settings(offload=True, models=("a", "b"), add_model=("x=./y", "org/name"))


#: A value of each field, as text of a variable and as it is read.
VARIABLES = {
    "model": ("gpt2", "gpt2"),
    "models": ("gpt2, other,", ("gpt2", "other")),
    "add_model": ("./here,small=org/name", ("./here", "small=org/name")),
    "device": ("cpu", "cpu"),
    "dtype": ("bfloat16", "bfloat16"),
    "quantize": ("4bit", "4bit"),
    "offload": ("Yes", True),
    "max_new_tokens": ("64", 64),
    "run_seconds": ("2.5", 2.5),
    "max_runs": ("3", 3),
    "max_sessions": ("4", 4),
    "idle_seconds": ("5", 5.0),
    "cache_bytes": ("6000", 6000),
    "prefix_cache": ("off", "off"),
}


def test_every_field_is_a_variable():
    assert set(VARIABLES) == {item.name for item in fields(Settings)}
    environment = {f"DECODESCOPE_{name.upper()}": text for name, (text, _) in VARIABLES.items()}
    assert parse(environment=environment) == Settings(**{name: value for name, (_, value) in VARIABLES.items()})


def test_a_flag_wins_over_its_variable_and_an_empty_variable_is_none():
    environment = {"DECODESCOPE_MAX_RUNS": "3", "DECODESCOPE_DEVICE": "cuda", "DECODESCOPE_DTYPE": " "}
    assert parse("--max-runs", "7", environment=environment) == Settings(max_runs=7, device="cuda")


def test_the_environment_of_the_process_is_read(monkeypatch):
    monkeypatch.setenv("DECODESCOPE_MAX_NEW_TOKENS", "12")
    assert Settings.from_flags(argparse.Namespace()) == Settings(max_new_tokens=12)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("MAX_RUNS", "many", "DECODESCOPE_MAX_RUNS: a value like 32 is wanted, got 'many'"),
        ("OFFLOAD", "maybe", "DECODESCOPE_OFFLOAD: 1 or 0 is wanted, got 'maybe'"),
        ("MAX_SESSIONS", "0", "max_sessions must be at least 1"),
        ("QUANTIZE", "8bit", "quantize must be one of none, 4bit"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(name, text, said):
    with pytest.raises(ValueError, match=said):
        parse(environment={f"DECODESCOPE_{name}": text})


def test_only_the_named_fields_become_flags():
    assert parse("--dtype", "float16", names=("dtype",)) == Settings(dtype="float16")
    with pytest.raises(SystemExit):
        parse("--device", "cpu", names=("dtype",))


@pytest.mark.parametrize(
    "name", ["max_new_tokens", "run_seconds", "max_runs", "max_sessions", "idle_seconds", "cache_bytes"]
)
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_below_one_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        Settings(**{name: value})
