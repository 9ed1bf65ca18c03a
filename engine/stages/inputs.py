"""Ids → the tensors a forward is fed: input_ids, attention_mask, position_ids."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.trace import Shape


@dataclass(frozen=True, eq=False)
class Inputs:
    """What one forward of n new positions is fed, on top of `past` positions that the cache holds. All int64."""

    input_ids: torch.Tensor  # [1, n]
    attention_mask: torch.Tensor  # [1, past + n], 1 = a real token
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


def make_inputs(new_ids: Sequence[int], *, past: int, device: torch.device, mask_length: int | None = None) -> Inputs:
    """The tensors for `new_ids` after `past` cached positions: the whole prompt at prefill, one id at a decode step.

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
        position_ids=positions_from_mask(mask)[:, past:],
    )
