import torch

from engine.stages.inputs import make_inputs, make_row_inputs, make_windowed_inputs, positions_from_mask

CPU = torch.device("cpu")


def test_a_prefill_feeds_the_whole_prompt() -> None:
    inputs = make_inputs([5, 6, 7], past=0, device=CPU)
    assert inputs.input_ids.tolist() == [[5, 6, 7]]
    assert inputs.attention_mask.tolist() == [[1, 1, 1]]
    assert inputs.position_ids.tolist() == [[0, 1, 2]]


def test_a_decode_step_feeds_one_token_and_the_mask_of_everything() -> None:
    inputs = make_inputs([8], past=3, device=CPU)
    assert inputs.shapes == {"input_ids": (1, 1), "attention_mask": (1, 4), "position_ids": (1, 1)}
    assert inputs.position_ids.tolist() == [[3]]


def test_the_mask_may_be_left_short_while_positions_go_on() -> None:
    inputs = make_inputs([8], past=5, device=CPU, mask_length=3)
    assert inputs.attention_mask.tolist() == [[1, 1, 1]]
    assert inputs.position_ids.tolist() == [[5]]


def test_positions_count_real_tokens_only() -> None:
    assert positions_from_mask(torch.tensor([[0, 0, 1, 1]])).tolist() == [[0, 0, 0, 1]]


def test_several_rows_are_fed_one_token_each() -> None:
    inputs = make_row_inputs([8, 9, 8], past=3, device=CPU)
    assert inputs.input_ids.tolist() == [[8], [9], [8]]
    assert inputs.attention_mask.tolist() == [[1, 1, 1, 1]] * 3
    assert inputs.position_ids.tolist() == [[3]] * 3


def test_positions_go_on_where_the_first_ones_have_left() -> None:
    inputs = make_inputs([8], past=3, device=CPU, offset=100)
    assert (inputs.attention_mask.tolist(), inputs.position_ids.tolist()) == ([[1, 1, 1, 1]], [[103]])


def test_each_position_sees_its_own_window() -> None:
    inputs = make_windowed_inputs([5, 6, 7, 8], [10, 10, 11, 13], first=10, device=CPU)
    assert inputs.position_ids.tolist() == [[10, 11, 12, 13]]
    assert inputs.attention_mask[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert inputs.shapes["attention_mask"] == (1, 1, 4, 4)
