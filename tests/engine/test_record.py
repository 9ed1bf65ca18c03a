"""A record comes back as it was, bit for bit; what is none is refused in one line, whatever it is."""

import gzip
import json
import random
import re
import time
import tracemalloc
import typing
import zlib
from pathlib import Path

import pytest

from engine.answers.table import ANSWERS
from engine.experiment import ExperimentError
from engine.probes.table import PROBES
from engine.record import (
    MADE_BY,
    MAX_FILE_BYTES,
    MAX_JSON_BYTES,
    MAX_VALUES,
    Answered,
    question,
    record_from_bytes,
    record_to_bytes,
)
from tests.engine.records import assert_same, contents, read, recorded

FEW = ("lens", "attention", "feed_forward", "merges")


@pytest.mark.parametrize("name", ["llama", "gpt2", "qwen3", "sliding"])
def test_a_record_comes_back_bit_for_bit(name):
    record = recorded(name)
    again = record_from_bytes(record_to_bytes(record))
    assert {one.probe for one in record.answers} >= set(PROBES) - {"positions", "rotary", "relative_phase"}
    assert_same(record.trace, again.trace, "trace")
    for one, other in zip(record.answers, again.answers, strict=True):
        assert one.key == other.key
        assert_same(one.result, other.result, one.probe)
    assert record_to_bytes(again) == record_to_bytes(record)
    assert again.made_by.startswith("Decodescope ")
    assert again.trace.versions["torch"]


def test_every_probe_has_its_kind_of_answer():
    assert {name: typing.get_type_hints(probe)["return"] for name, probe in PROBES.items()} == ANSWERS


def test_the_same_question_has_one_key():
    assert question("lens", {"turn": 0, "query": None}) == question("lens", {"turn": 0})
    assert question("chances", {"steps": (1, 2)}) == Answered("chances", {"steps": [1, 2]}, None).key
    assert question("lens", {"turn": 0}) != question("lens", {"turn": 1})


def packed(text: str | bytes) -> bytes:
    return gzip.compress(text if isinstance(text, bytes) else text.encode(), 1, mtime=0)


def bomb() -> bytes:
    """Fewer bytes than a file may have, that inflate to more than may be in it."""
    return gzip.compress(b" " * (MAX_JSON_BYTES + 1), 6, mtime=0)


WHOLE = record_to_bytes(recorded("llama", FEW))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "breaks off"),
        (b"hello", "this file is no record"),
        (b"PK\x03\x04" + bytes(100), "this file is no record"),
        (b"\x1f\x8b\x08", "breaks off"),
        (WHOLE[:-20], "breaks off"),
        (WHOLE + WHOLE, "something follows"),
        (WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]), "damaged"),
        (zlib.compress(gzip.decompress(WHOLE)), "this file is no record"),
        (bytes(MAX_FILE_BYTES + 1), "has at most 8,000,000 bytes"),
        (bomb(), "takes more than 64,000,000 bytes"),
        (packed(""), "not valid JSON"),
        (packed("[" * 100_000), "nested too deeply"),
        (packed('{"a":' * 100_000), "nested too deeply"),
        (packed("[" + "0," * MAX_VALUES + "0]"), "has at most 2,000,000 values"),
        (packed(b'{"format": "\xff"}'), "not written in UTF-8"),
        (packed('{"version": NaN}'), "NaN is no number"),
        (packed('{"version": -Infinity}'), "-Infinity is no number"),
        (packed('{"version": 1, "version": 1}'), "stands twice"),
        (packed('{"version": ' + "9" * 5_000 + "}"), "not valid JSON"),
        (packed("[]"), "this file is no record"),
        (packed('{"format": "other", "version": 1}'), "this file is no record"),
        (packed('{"format": "decodescope record", "version": 2}'), "version 2; this program reads version 1"),
        (packed('{"format": "decodescope record", "version": true}'), "version True"),
        (packed('{"format": "decodescope record", "version": 1}'), "answers: this field is missing"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(data, said):
    with pytest.raises(ExperimentError) as caught:
        record_from_bytes(data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def change(content, path, value):
    *way, last = path
    for part in way:
        content = content[part]
    content[last] = value


LENS = ("answers", 0, "result")
NONE_OF_MANY = {"dtype": "int32", "shape": [2**31 - 1, 2**31 - 1, 0], "data": ""}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("extra",), 1, "extra: unknown field"),
        (("made_by",), 3, "made_by: text is wanted"),
        (("trace", "experiment", "sampling", "top_p"), 7, "trace.sampling.top_p: "),
        (("trace", "experiment", "model"), "other", "unknown model 'other'"),
        (("trace", "facts", "layers"), 7, "the sizes"),
        (("trace", "facts", "heads"), 10**9, "at most 1,000 layers, and heads in each"),
        (("trace", "facts", "layers"), True, "trace.facts.layers: a whole number is wanted, got True"),
        (("trace", "versions", "torch"), None, "trace.versions.torch: text is wanted"),
        (("trace", "events"), {}, "trace.events: a list is wanted"),
        (("trace", "events", 0, "kind"), "Rendered", "an event is one of rendered, "),
        (("trace", "events", 0, "kind"), {}, "an event is one of rendered, "),
        (("trace", "events", 0, "turn"), 1, "the prompt of turn 0"),
        (("trace", "events", 0, "pieces", 0), "\ud800", "half a character"),
        (("trace", "events", 0, "pieces"), ["a"], "has another length"),
        (("trace", "events", 0, "spans", 0, "end"), 10**6, "the text has"),
        (("trace", "events", 0, "token_ids", "dtype"), "object", "trace.events[0].token_ids.dtype: one of int32"),
        (("trace", "events", 0, "token_ids", "dtype"), "float32", "trace.events[0].token_ids.dtype: one of int32"),
        (("trace", "events", 0, "token_ids", "shape"), [10**9], "bytes are no int32 array"),
        (("trace", "events", 0, "token_ids", "shape"), [-1], "a list of sizes is wanted"),
        (("trace", "events", 0, "token_ids"), NONE_OF_MANY, "0 bytes are no int32 array"),
        (("trace", "events", 0, "token_bytes", 0), "a" * 1_001, "a token has 1,001 bytes"),
        (("trace", "events", 0, "pieces", 0), "é" * 501, "a token has 1,002 bytes"),
        (("trace", "events", 0, "text"), "a" * 1_000_001, "a prompt is shown in 1,000,001 bytes"),
        (("trace", "events", 2, "candidate_bytes", 0), "a" * 1_001, "a token has 1,001 bytes"),
        (("trace", "events", -1, "evidence", "max_new_tokens"), 10**400, "no turn ends like that by 'length'"),
        (("trace", "events", 0, "token_ids", "data"), "?", "this is not base64"),
        (("trace", "events", 2, "step"), 3, "step 0 of turn 0 is wanted here"),
        (("trace", "events", 2, "stages"), [], "a step has stages and candidates"),
        (("trace", "events", 2, "token_id"), 10**6, "token ids of this model go up to 319"),
        (("trace", "events", 2, "token_bytes"), 10**12, "text, or a list of bytes is wanted"),
        (("trace", "events", 2, "seconds"), {"float": "1"}, "a number is wanted"),
        (("trace", "events", 2), {"kind": "stepped"}, "this field is missing"),
        (("answers", 0, "probe"), "__class__", "unknown probe '__class__'"),
        (("answers", 0, "probe"), "residual", "unknown field"),
        (("answers", 0, "arguments", "turn"), 1, "the answer is to another question"),
        (("answers", 1, "arguments", "layer"), "1", "the answer is to another question"),
        ((*LENS, "turn"), 3, "arguments.turn: the answer is to another question"),
        ((*LENS, "position"), 10**6, "answers[0].result.position: there is no 1000000"),
        ((*LENS, "top_bytes"), ["a"], "entries are wanted, got 1"),
        ((*LENS, "max_difference"), None, "a number is wanted"),
        (("answers", 1, "result", "kinds", 0, 0), "evil", "one of 'self', 'first'"),
        (("answers", 1, "result", "kinds", 0), [], "entries are wanted"),
        (("answers", 2, "result", "token_bytes"), {"x": "a"}, "numbers as names is wanted"),
    ],
)
def test_a_record_that_is_not_whole_is_refused_with_the_place(path, value, said):
    content = contents(recorded("llama", FEW))
    change(content, path, value)
    if path[-1] == "layers" and value == 7:
        said = "these sizes are those of no model"
    with pytest.raises(ExperimentError) as caught:
        read(content)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


HOSTILE = [
    *(None, True, -1, 0, 3, 2**31, 2**63, 10**40, 0.5, -1e308, "", "x", "\ud800", "\x00" * 50, [], {}, [[]]),
    *({"float": "nan"}, {"float": "inf"}, [1] * 50, {"dtype": "float32", "shape": [], "data": ""}),
    {"dtype": "int32", "shape": [2**30, 2**30, 0], "data": ""},
    {"dtype": "float32", "shape": [1], "data": "AADAfw=="},
    "0" * 1_000,
]


def mutated(content, chance: random.Random):
    """The content with one place changed, taken out, doubled or renamed."""
    here = content
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = chance.choice(keys)
        if isinstance(here[key], dict | list) and here[key] and chance.random() < 0.9:
            here = here[key]
            continue
        match chance.randrange(5):
            case 0:
                del here[key]
            case 1 if isinstance(here, list):
                here.insert(key, here[key])
            case 1:
                here[str(key) + "x"] = here[key]
            case _:
                here[key] = chance.choice(HOSTILE)
        return content


def outcome(data: bytes) -> str:
    """How a file is taken, within a second."""
    began = time.thread_time()
    try:
        record = record_from_bytes(data)
    except ExperimentError as refused:
        said = str(refused)
        assert said
        assert len(said) < 600
        assert "\n" not in said
    else:
        said = "taken"
        assert record_from_bytes(record_to_bytes(record)).trace.turns == record.trace.turns
    assert time.thread_time() - began < 1.0
    return re.sub(r"\d+", "0", said)


@pytest.mark.parametrize(
    ("name", "probe", "among"), [("llama", "rotary", "positions"), ("gpt2", "positions", "places")]
)
def test_a_position_that_the_answer_does_not_hold_is_refused(name, probe, among):
    content = contents(recorded(name, (probe,)))
    read(content)
    content["answers"][0]["result"]["ahead"] = 100_000
    with pytest.raises(ExperimentError, match=rf"result\.{among}: position 100\d+, which the answer is about"):
        read(content)
    del content["answers"][0]["result"]["ahead"]  # as in a record of an earlier version
    assert read(content).answers[0].result.ahead == 0


def test_an_answer_about_the_model_has_the_layers_of_the_model():
    content = contents(recorded("llama", ("model",)))
    change(content, ("answers", 0, "result", "layer_count"), 10**9)
    with pytest.raises(ExperimentError, match="result.layer_count: this model has 2 layers"):
        read(content)


def test_thousands_of_damaged_records_are_refused_or_read_and_nothing_else():
    chance = random.Random(0)
    text = json.dumps(contents(recorded("llama", ("lens", "attention", "residual"))))
    outcomes = set()
    for _ in range(1_500):
        outcomes.add(outcome(packed(json.dumps(mutated(json.loads(text), chance)))))
    for _ in range(1_500):
        changed = bytearray(WHOLE)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        outcomes.add(outcome(bytes(changed)))
    plain = text.encode()
    for _ in range(500):
        at, length = chance.randrange(len(plain)), chance.choice([1, 2, 50])
        outcomes.add(outcome(packed(plain[:at] + chance.randbytes(length) + plain[at + length :])))
    assert "taken" in outcomes
    assert len(outcomes) > 100


@pytest.mark.parametrize("data", [bomb(), packed("[" + "[]," * (MAX_VALUES // 2 - 1) + "[]]"), packed("[" * 1_000_000)])
def test_a_bomb_takes_no_more_memory_than_is_said(data):
    tracemalloc.start()
    try:
        with pytest.raises(ExperimentError):
            record_from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_JSON_BYTES
    finally:
        tracemalloc.stop()


def test_a_record_says_which_version_of_the_program_made_it():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert f'version = "{MADE_BY.removeprefix("Decodescope ")}"' in project
