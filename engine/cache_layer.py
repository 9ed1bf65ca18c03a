"""A cache layer with spare room, so that a decode step writes one position instead of copying all of them."""

from typing import Any

import torch
from transformers.cache_utils import DynamicLayer

#: Positions of room beyond those held. At 45 KiB a position (the embedded model) that is under 3 MiB.
SPARE = 64


class SpareLayer(DynamicLayer):
    """transformers' growing layer on tensors that are made `SPARE` positions longer than what they hold.

    `keys` and `values` [batch, kv_heads, positions held, head_dim] are views of the room's beginning, with the very
    numbers that concatenation gives. Room is written by one layer only: see `share`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._room: tuple[torch.Tensor, torch.Tensor] | None = None
        self._start = 0  # of what is held, in the room

    def evict(self, count: int) -> None:
        """Forget the first `count` positions; the others stay where they are, or get a room that fits them."""
        if self.keys is None or self.values is None:
            return
        self.keys, self.values = self.keys[..., count:, :], self.values[..., count:, :]
        if self._room is not None:
            self._start += count
            self._fit()

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last −`tokens_to_remove` positions, as transformers counts them."""
        super().crop(tokens_to_remove)
        self._fit()

    def _fit(self) -> None:
        """Give back a room that is mostly empty: it is held as long as a view of it is, and counted by nobody."""
        if self._room is None or self.keys is None or self.values is None:
            return
        if self._room[0].shape[-2] > self.keys.shape[-2] + 2 * SPARE:
            self.keys, self.values = self.keys.clone(), self.values.clone()
            self.share()

    def share(self) -> None:
        """Let others look at what is held: the next position goes to room of its own, and theirs stays as it is."""
        self._room, self._start = None, 0

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: Any,  # noqa: ARG002 - the signature is transformers'
        **kwargs: Any,  # noqa: ARG002
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Take in new positions [batch, kv_heads, n, head_dim]; gives keys and values of all that are held."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        held = self.get_seq_length()
        total = held + key_states.shape[-2]
        if self._room is None or self._room[0].shape[-2] < self._start + total:
            self._room, self._start = self._new_room(key_states, value_states, held, total + SPARE), 0
        keys, values = (states.narrow(-2, self._start, total) for states in self._room)
        keys.narrow(-2, held, total - held).copy_(key_states)
        values.narrow(-2, held, total - held).copy_(value_states)
        self.keys, self.values = keys, values
        return keys, values

    def reset(self) -> None:
        """Forget every position and give the room back."""
        self._room, self._start = None, 0
        super().reset()

    def _new_room(
        self, key_states: torch.Tensor, value_states: torch.Tensor, held: int, capacity: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = (
            states.new_empty((*states.shape[:-2], capacity, states.shape[-1])) for states in (key_states, value_states)
        )
        if self.keys is not None and self.values is not None and held:
            keys[..., :held, :] = self.keys
            values[..., :held, :] = self.values
        return keys, values
