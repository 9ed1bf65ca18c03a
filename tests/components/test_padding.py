"""The padding demonstration shows its probe's numbers and says what they show, not what was expected."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from components.tensors import panel
from components.tensors.padding import padding_values
from engine.model import LoadedModel
from tests.components.looking import HOSTILE, SHOWN_HOSTILE, Looked, cells, look, notes
from tests.components.reading import read
from tests.engine.models import tiny

LONG = "the cat sat on the mat and then the dog sat there too; one two three four"


@pytest.fixture(scope="module")
def looked(llama: LoadedModel) -> Iterator[Looked]:
    with look(llama, LONG) as looked:
        yield looked


@pytest.fixture
def found(looked: Looked) -> Any:
    looked.desk.ask(looked.visit, "padding")
    assert looked.visit.notice == ""
    return looked.visit.results["padding"]


def test_it_waits_to_be_asked(looked: Looked) -> None:
    looked.visit.results.pop("padding", None)
    remark, *others = panel.render(looked(position=None))[-3:]
    assert notes(remark)[0][1].startswith("A batch is a rectangle")
    assert others == [None, None]


def test_every_number_is_the_probe_s(looked: Looked, found: Any) -> None:
    remark, ways, columns = panel.render(looked(position=None))[-3:]
    (_, texts), (_, said) = notes(remark)
    assert texts == (
        f"Text 1: the 32 newest tokens of this run's context, out of {found.whole}. Text 2: “Once upon a time”. Text 2 "
        f"is the shorter one and gets {found.pads} × <|endoftext|> on its left, so that the last column is the last "
        "token of both."
    )
    moved = {one.way: float(one.max_differences[1]) for one in found.tried}
    assert f"at position {found.pads} instead of 0, yet its logits move by only {moved['columns']:.1e}" in said
    assert f"up to {moved['no_mask']:.2g}." in said
    rows = cells(ways)
    assert [row[0] for row in rows][:2] == ["alone, no batch", "filled on the left, positions from the mask"]
    assert len(rows) == 6
    tones = {row[0]: cell for row, cell in zip(rows, [row[1] for row in read(ways)["rows"]], strict=True)}
    assert tones["filled on the left, positions by column"][1] == "ok"
    assert tones["filled on the left, nothing masked"][:2] == [f"{moved['no_mask']:.2f}", "warn"]
    lines = cells(columns)
    assert len(lines) == found.token_ids.shape[1] == 32
    first = found.pads
    assert lines[first - 1][4:] == ["<|endoftext|>", "0", "0"]
    assert [line[0] for line in lines] == [str(column) for column in range(32)]
    assert [line[5:] for line in lines[first:]] == [["1", str(at)] for at in range(32 - first)]
    assert [line[2:4] for line in lines] == [["1", str(at)] for at in range(32)]


def test_learned_positions_are_told_with_their_difference() -> None:
    with look(tiny("gpt2"), LONG) as looked:
        looked.desk.ask(looked.visit, "padding")
        found = looked.visit.results["padding"]
        remark = panel.render(looked())[-3]
    moved = found.tried[1].max_differences[1]
    assert f"and its logits move by up to {moved:.2g}" in notes(remark)[1][1]
    assert "positions are learned" in notes(remark)[1][1]


def test_a_rotary_model_that_does_mind_the_shift_is_not_said_to_be_harmless(looked: Looked, found: Any) -> None:
    tried = list(found.tried)
    tried[1] = dataclasses.replace(tried[1], max_differences=np.array([0, 3], np.float32))
    bad = dataclasses.replace(found, tried=tuple(tried))
    said = notes(padding_values(bad, looked().facts)[0])[1][1]
    assert "harmless" not in said
    assert "move by up to 3" in said


def test_changed_tokens_and_nan_stand_out(looked: Looked, found: Any) -> None:
    tried = list(found.tried)
    tried[0] = dataclasses.replace(
        tried[0], max_differences=np.array([0, np.nan], np.float32), best_ids=found.alone_ids + 1
    )
    rows = read(padding_values(dataclasses.replace(found, tried=tuple(tried)), looked().facts)[1])["rows"]
    assert rows[1][1][:2] == ["NaN", "warn"]
    assert rows[1][2][1] == "warn"


def test_hostile_tokens_stay_text(looked: Looked, found: Any) -> None:
    row = (HOSTILE,) * 32
    bad = dataclasses.replace(found, pad_bytes=HOSTILE, alone_bytes=(HOSTILE, HOSTILE), token_bytes=(row, row))
    remark, ways, columns = padding_values(bad, looked().facts)
    assert SHOWN_HOSTILE in notes(remark)[0][1]
    assert cells(ways)[0][2] == SHOWN_HOSTILE
    assert cells(columns)[0][1] == SHOWN_HOSTILE
