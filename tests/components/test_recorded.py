"""The recorded run through the panels of this folder, at every position of both turns."""

import json

import pytest

from components import checks
from components.prompt import panel as prompt
from components.run_table import panel as run_table
from components.tensors import panel as tensors
from components.tokens import panel as tokens
from tests.components.handmade import make_view


@pytest.mark.parametrize("panel", [prompt, tokens, tensors, run_table], ids=lambda panel: panel.STATION)
@pytest.mark.parametrize("turn", [0, 1])
def test_every_position_can_be_shown(paris, panel, turn):
    last = paris.steps(turn)[-1].position
    for position in (None, *range(0, last + 1, 5), last):
        view = make_view(paris, turn=turn, position=position)
        assert panel.unavailable(view) is None
        text = json.dumps(panel.render(view), allow_nan=False, ensure_ascii=False)
        assert "�" not in text
        assert "nan" not in text.lower().split()
        assert len(text) < 80_000
        assert all(station.result for station in panel.stations(view))


def test_the_first_prompt_position_has_its_checks_too(paris):
    assert {station.tone for station in checks.checks(make_view(paris, position=0))} == {"ok"}
