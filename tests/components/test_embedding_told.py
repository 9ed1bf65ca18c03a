"""The embedding panel in a sliding window: what it says is of the position that the model was told."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from components.panel import View
from tests.components.embedding_visit import Looked, cells, drawn, said
from tests.components.reading import read, read_figure
from tests.engine.models import tiny

SIZE = 8
PROMPT = "the cat sat on the mat and then the dog sat there too"


@pytest.fixture
def windowed(request: pytest.FixtureRequest) -> Iterator[View]:
    """A view of the last position fed."""
    model, way = request.param
    looked = Looked(
        tiny(model), prompt=PROMPT, context={"strategy": "sliding_window", "max_tokens": SIZE, "positions": way}
    )
    view = looked.at()
    # Eight tokens of the prompt stay; three of the four that were chosen were fed.
    assert view.fed_position == SIZE + 2
    yield view
    looked.runtime.shut_down()


def whole_prompt() -> int:
    return len(tiny("llama").tokenizer(PROMPT)["input_ids"])


@pytest.mark.parametrize("windowed", [("llama", "restart"), ("llama", "go_on")], indirect=True)
def test_the_angles_are_of_the_position_that_was_told(windowed: View) -> None:
    restart = windowed.trace.experiment.context.positions == "restart"  # type: ignore[union-attr]
    told = SIZE - 1 if restart else whole_prompt() + 2
    shown, found = drawn(windowed), windowed.results["rotary"]
    assert (found.position, found.told) == (SIZE + 2, told)
    turns = [line[4] for line in cells(shown["wavelengths"]["numbers"])]
    assert turns == [f"{told * 10000 ** (-pair / 4) / (2 * np.pi):,.3f}" for pair in range(4)]
    assert f"told position {told} for the token in sight, which stands at {SIZE + 2}" in said(shown["rotary_note"])
    picture = read(shown["angles"])
    assert picture["selected"] == [0, told]
    keys = picture["column_keys"]
    # The column of the position that was told is that of the token in sight, the one before it that of its neighbour.
    assert [keys[at]["position"] for at in (told - 1, told)] == [SIZE + 2, SIZE + 3]
    assert [key == {} for key in keys[:told]] == [at < told - SIZE - 2 for at in range(told)]


@pytest.mark.parametrize("windowed", [("gpt2", "restart"), ("gpt2", "go_on")], indirect=True)
def test_the_learned_row_is_of_the_position_that_was_told(windowed: View) -> None:
    shown, found = drawn(windowed), windowed.results["positions"]
    own: Any = tiny("gpt2").model.transformer.wpe.weight[found.told].detach()  # type: ignore[union-attr, index]
    assert found.told != found.position
    note = said(shown["learned_note"])
    assert f"At position {found.told} that row has norm {float(own.norm()):.2f}" in note
    assert f"told position {found.told}" in note
    here = read_figure(shown["learned"])["data"][1]
    assert here["x"] == [found.told]
    at = found.places.tolist().index(found.told)
    assert read(shown["learned_map"])["selected"] == [at, at]
