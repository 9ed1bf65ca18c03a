"""Records of tiny models, and what two of them have to have in common."""

import dataclasses
import gzip
import json
from functools import cache
from typing import Any

import numpy as np

from engine.anatomy import AnatomyError
from engine.asking import answer
from engine.conversation import Conversation
from engine.probes.table import PROBES
from engine.record import Answered, Record, record_from_bytes, record_to_bytes
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

#: What the probes that cannot be asked without arguments are asked.
ASKED: dict[str, dict[str, Any]] = {
    "arithmetic": {"formula": "c + d"},
    "attention_matrix": {"layer": 1, "head": 1},
    "chances": {"steps": [0, 1], "token_ids": [5, 6]},
    "distribution": {"step": 1, "query": "a"},
    "merges": {"text": "the cat"},
    "policy": {"strategy": "none"},
    "uncached": {"step": 2},
}


@cache
def recorded(name: str, probes: tuple[str, ...] = tuple(PROBES)) -> Record:
    """A short run of a tiny model, with what each probe gives of it by itself."""
    conversation, answers = Conversation(tiny(name), experiment()), []
    finish(conversation)
    for probe in probes:
        try:
            asked, result = answer(PROBES, conversation, probe, ASKED.get(probe, {}))
        except AnatomyError:  # this model has no such part
            continue
        answers.append(Answered(probe, asked, result))
    return Record(conversation.trace, tuple(answers))


def contents(record: Record) -> dict[str, Any]:
    """The JSON inside the record's file."""
    found: dict[str, Any] = json.loads(gzip.decompress(record_to_bytes(record)))
    return found


def read(content: Any) -> Record:
    """A record from that JSON."""
    return record_from_bytes(gzip.compress(json.dumps(content).encode(), 1))


def assert_same(left: Any, right: Any, path: str = "") -> None:
    """Equal in type and in every bit."""
    assert type(left) is type(right), path
    if isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), path
        assert left.tobytes() == right.tobytes(), path
    elif dataclasses.is_dataclass(left):
        for item in dataclasses.fields(left):
            assert_same(getattr(left, item.name), getattr(right, item.name), f"{path}.{item.name}")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), path
        for index, pair in enumerate(zip(left, right, strict=True)):
            assert_same(*pair, f"{path}[{index}]")
    elif isinstance(left, dict):
        assert list(left) == list(right), path
        for key in left:
            assert_same(left[key], right[key], f"{path}.{key}")
    else:
        assert left == right or (left != left and right != right), path
