"""Ids → the tensors a forward is fed: input_ids, attention_mask, position_ids."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.trace import Shape


@dataclass(frozen=True, eq=False)
class Inputs:
    """What one forward of n new positions is fed, on top of `past` positions that the cache holds. All int64."""

    input_ids: torch.Tensor  # [1, n]
    attention_mask: torch.Tensor  # [1, past + n], 1 = a real token; or [1, 1, n, past + n], True = visible
    position_ids: torch.Tensor  # [1, n], counted from 0 over the whole context

    @property
    def shapes(self) -> dict[str, Shape]:
        """Name → shape, as a trace shows them."""
        return {
            "input_ids": tuple(self.input_ids.shape),
            "attention_mask": tuple(self.attention_mask.shape),
            "position_ids": tuple(self.position_ids.shape),
        }


def positions_from_mask(attention_mask: torch.Tensor) -> torch.Tensor:
    """Position ids [1, n] of a mask [1, n]: the running count of real tokens, from 0; 0 on padding."""
    return (attention_mask.cumsum(-1) - 1).clamp(min=0)


def make_inputs(
    new_ids: Sequence[int], *, past: int, device: torch.device, mask_length: int | None = None, offset: int = 0
) -> Inputs:
    """The tensors for `new_ids` after `past` cached positions: the whole prompt at prefill, one id at a decode step.

    `offset` is where the first cached position stands: positions before it have left a window in which counting goes
    on. The mask has a column for what is held, not for what has left.

    `mask_length` leaves the mask shorter than past + n, the classic fault of a loop that keeps its prompt's mask.
    transformers fills such a mask up with zeros on the right (masking_utils.prepare_padding_mask), so every position
    beyond it counts as padding: a new token sees the prompt and neither its predecessors in the answer nor itself.
    Positions go on counting, as the model itself would count them from the cache.
    """
    total = past + len(new_ids)
    mask = torch.ones((1, total), dtype=torch.long, device=device)
    return Inputs(
        input_ids=torch.tensor([list(new_ids)], dtype=torch.long, device=device),
        attention_mask=mask[:, : total if mask_length is None else mask_length],
        position_ids=torch.arange(past + offset, total + offset, device=device)[None],
    )


def make_windowed_inputs(ids: Sequence[int], sees_from: Sequence[int], *, first: int, device: torch.device) -> Inputs:
    """The tensors for all of `ids` at once, the first at position `first`, each seeing what it saw when it was new.

    `sees_from` names for each the first position that it sees; the mask [1, 1, n, n] says so row by row.
    """
    columns = torch.arange(first, first + len(ids), device=device)
    begins = torch.tensor(list(sees_from), dtype=torch.long, device=device)
    visible = (columns[None, :] <= columns[:, None]) & (columns[None, :] >= begins[:, None])
    return Inputs(
        input_ids=torch.tensor([list(ids)], dtype=torch.long, device=device),
        attention_mask=visible[None, None],
        position_ids=columns[None],
    )


def make_row_inputs(newest: Sequence[int], *, past: int, device: torch.device) -> Inputs:
    """One new token for each of several rows of `past` cached positions each; every field has a row for each."""
    rows = len(newest)
    return Inputs(
        input_ids=torch.tensor(list(newest), dtype=torch.long, device=device)[:, None],
        attention_mask=torch.ones((rows, past + 1), dtype=torch.long, device=device),
        position_ids=torch.full((rows, 1), past, dtype=torch.long, device=device),
    )
