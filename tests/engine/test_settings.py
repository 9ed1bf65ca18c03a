import argparse
from dataclasses import fields

import pytest

from engine.settings import Settings


def parse(*arguments, names=()) -> Settings:
    parser = argparse.ArgumentParser()
    Settings.add_flags(parser, *names)
    return Settings.from_flags(parser.parse_args(arguments))


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
        assert item.default is None or f"(default: {item.default})" in line


def test_flags_are_read_by_their_types():
    settings = parse("--model", "gpt2", "--max-new-tokens", "8", "--run-seconds", "1.5", "--device", "cpu")
    assert settings == Settings(model="gpt2", max_new_tokens=8, run_seconds=1.5, device="cpu")


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
