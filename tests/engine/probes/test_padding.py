"""Two texts in one batch: masks and positions by hand, and logits beside those of the text alone, with and without."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from engine.answers.padding import Padding, Tried
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes import padding as module
from engine.probes.padding import MAX_TOKENS, SECOND, WAYS, padding
from engine.stages.inputs import positions_from_mask
from tests.engine.models import CONFIGS, tiny
from tests.engine.probes.test_lens import FACTS, talk

ROTARY = ["llama", "qwen3", "capped", "mixed", "sliding", "full"]
LONG = "the cat sat on the mat and then the dog sat there too; one two three four five six seven eight nine ten eleven"


def ways(found: Padding) -> dict[str, Tried]:
    assert tuple(one.way for one in found.tried) == WAYS
    return {one.way: one for one in found.tried}


def test_masks_and_positions_by_hand() -> None:
    """The published example: one token beside four. Filled up on the left, counted from the mask, filling gets 0."""
    golden = FACTS["qwen2.5-0.5b-instruct"]["tokenizer"]["padding"]
    rows = ([104455], [102217, 100134, 99165, 103027])
    cpu = torch.device("cpu")
    left = module._batch(rows, 151643, "mask", cpu)
    assert left.ids.tolist() == golden["input_ids"]
    assert left.mask.tolist() == golden["attention_mask"]
    assert left.positions.tolist() == golden["positions_by_mask"]
    assert left.read == (3, 3)
    assert module._batch(rows, 151643, "columns", cpu).positions.tolist() == [[0, 1, 2, 3]] * 2
    assert module._batch(rows, 151643, "no_mask", cpu).mask.tolist() == [[1] * 4] * 2
    right = module._batch(rows, 151643, "right_read", cpu)
    assert right.ids.tolist()[0] == [104455, 151643, 151643, 151643]
    assert right.mask.tolist() == [[1, 0, 0, 0], [1, 1, 1, 1]]
    assert right.read == (0, 3)
    assert module._batch(rows, 151643, "right_last", cpu).read == (3, 3)


def test_rows_are_never_of_the_same_length() -> None:
    assert module._rows((1, 2, 3), [7, 8]) == ([1, 2, 3], [7, 8])
    assert module._rows((1, 2), [7, 8]) == ([1, 2], [8])
    assert module._rows((1,), [7]) == ([1], [7, 7])
    assert module._rows(tuple(range(100)), [7])[0] == list(range(100 - MAX_TOKENS, 100))


@pytest.mark.parametrize("name", list(CONFIGS))
def test_with_mask_and_positions_right_a_batch_changes_nothing(name: str) -> None:
    """Fully masked rows (the filling sees nothing) spoil nothing either, a capped softmax included."""
    found = padding(talk(tiny(name), prompt=LONG))
    tried = ways(found)
    assert found.pads > 10
    for way in ("mask", "right_read"):
        assert tried[way].max_differences.max() < 2e-5
        assert tried[way].best_ids.tolist() == found.alone_ids.tolist()
        np.testing.assert_allclose(tried[way].alone_probabilities, found.alone_probabilities, atol=1e-5)
    longer = 1 - found.padded_row
    for one in found.tried:
        assert np.isfinite(one.max_differences).all()
        assert one.max_differences[longer] < 2e-5
    for way in ("no_mask", "right_last"):
        assert tried[way].max_differences[found.padded_row] > 0.05


@pytest.mark.parametrize("name", ROTARY)
def test_rotary_positions_do_not_mind_a_shift(name: str) -> None:
    found = padding(talk(tiny(name), prompt=LONG))
    assert found.positions == "rotary"
    assert ways(found)["columns"].max_differences.max() < 5e-5


def test_learned_positions_do() -> None:
    found = padding(talk(tiny("gpt2"), prompt=LONG))
    assert found.positions == "learned"
    assert ways(found)["columns"].max_differences[found.padded_row] > 0.5


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_every_way_is_what_the_library_gives(name: str) -> None:
    """Oracle: the model called directly on the tensors that the page shows."""
    loaded = tiny(name)
    found = padding(talk(loaded, prompt=LONG))
    ids, mask = (torch.from_numpy(array).long() for array in (found.token_ids, found.attention_mask))
    assert torch.equal(positions_from_mask(mask), torch.from_numpy(found.positions_by_mask).long())
    positions = {
        "mask": found.positions_by_mask,
        "columns": found.positions_by_column,
        "no_mask": found.positions_by_column,
    }
    row = found.padded_row
    text = ids[row][mask[row] == 1][None]
    with torch.inference_mode():
        alone = loaded.model(text, use_cache=False).logits[0, -1]
        for way, place in positions.items():
            seen = torch.ones_like(mask) if way == "no_mask" else mask
            place = torch.from_numpy(place).long()
            logits = loaded.model(ids, attention_mask=seen, position_ids=place, use_cache=False).logits[row, -1]
            tried = ways(found)[way]
            assert tried.max_differences[row] == pytest.approx(float((logits - alone).abs().max()), abs=1e-4)
            assert tried.best_ids[row] == int(logits.argmax())
            chosen = logits.softmax(dim=-1)[found.alone_ids[row]]
            assert tried.alone_probabilities[row] == pytest.approx(float(chosen), abs=1e-5)
    assert found.alone_ids[row] == int(alone.argmax())


def test_the_run_s_newest_tokens_stand_beside_the_fixed_text(llama: LoadedModel) -> None:
    conversation = talk(llama, prompt=LONG)
    rendered = conversation.trace.rendered(0)
    assert rendered is not None
    context = [*rendered.token_ids.tolist(), *(step.token_id for step in conversation.trace.steps(0))][:-1]
    found = padding(conversation)
    assert found.whole == len(context) > MAX_TOKENS
    assert found.token_ids[0].tolist() == context[-MAX_TOKENS:]
    real = found.token_ids[1][found.attention_mask[1] == 1].tolist()
    assert llama.tokenizer.decode(real) == SECOND
    assert (found.padded_row, found.pad_id, found.pad_bytes) == (1, llama.tokenizer.pad_token_id, b"<|endoftext|>")
    short = padding(talk(llama, tokens=1, prompt="a"))
    assert (short.padded_row, short.whole) == (0, 1)
    assert b"".join(short.token_bytes[1]) == SECOND.encode()
    with pytest.raises(ExperimentError):
        padding(conversation, turn=3)


def test_without_a_filling_token_any_id_does(llama: LoadedModel) -> None:
    bare = copy.deepcopy(llama.tokenizer)
    bare.pad_token = None
    found = padding(talk(dataclasses.replace(llama, tokenizer=bare), prompt=LONG))
    assert found.pad_id == llama.facts.eos_ids[0]
    assert ways(found)["mask"].max_differences.max() < 2e-5


def test_the_run_s_cache_stays_as_it_is(llama: LoadedModel) -> None:
    conversation = talk(llama, prompt=LONG)
    assert conversation.turn is not None
    assert conversation.turn.cache is not None
    before = [layer.keys.clone() for layer in conversation.turn.cache.layers]
    padding(conversation)
    for layer, keys in zip(conversation.turn.cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)


def test_the_embedded_model_minds_the_mask_and_not_the_shift(embedded: LoadedModel) -> None:
    """Measured with plain transformers calls, eager attention, without this program.

    Recipe: `tokenizer(["The capital …  is", "Once upon a time"], padding=True, padding_side="left")`, one call of the
    model with the mask and positions of each way, `logits[1, -1]` against a call on the second text alone.
    """
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    fields = {"model": embedded.facts.model_id, "prompt": golden["prompt"], "sampling": {"do_sample": False}}
    found = padding(talk(embedded, tokens=1, **fields))
    tried = ways(found)
    assert (found.pads, found.padded_row, found.positions) == (8, 1, "rotary")
    assert found.alone_ids[0] == golden["paris_id"]
    assert found.alone_bytes == (b" Paris", b",")
    assert found.alone_probabilities.tolist() == pytest.approx([golden["p_paris"], 0.9273], abs=2e-4)
    for way in ("mask", "columns", "right_read"):
        assert tried[way].max_differences.max() < 3e-4
    assert tried["no_mask"].max_differences[1] == pytest.approx(18.309, abs=0.01)
    assert tried["right_last"].max_differences[1] == pytest.approx(36.466, abs=0.01)
    assert tried["right_last"].best_bytes[1] == b"."
