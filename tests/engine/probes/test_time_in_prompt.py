"""A time in the system prompt: where it stands decides what is shared, and where no template writes it nothing is."""

import pytest

from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.time_in_prompt import time_in_prompt
from tests.engine.conversations import experiment
from tests.engine.models import CHATML


def test_a_time_put_last_keeps_more_than_one_put_first(llama: LoadedModel) -> None:
    first, last = time_in_prompt(Conversation(llama, experiment())).cases
    assert (first.place, last.place) == ("first", "last")
    assert 0 < first.common < last.common < last.positions
    assert first.old != first.new


def test_a_template_that_leaves_the_system_prompt_out_is_refused(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = CHATML.replace("in messages", "in messages if message['role'] != 'system'", 1)
    monkeypatch.setattr(llama.tokenizer, "chat_template", without)
    with pytest.raises(ExperimentError, match="leaves the system prompt out, so a time"):
        time_in_prompt(Conversation(llama, experiment()))
