"""Padding: two texts of different length in one batch, and what each way of doing it does to their next token.

A batch is a rectangle, so the shorter text is filled up. Generation fills up on the left: the last column is then the
last token of every row. The mask hides the filling, and positions are counted from the mask.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from engine.answers.padding import Padding, Tried, Way
from engine.conversation import Conversation
from engine.probes.inside import context_of
from engine.stages.inputs import positions_from_mask
from engine.stages.vocabulary import vocabulary
from engine.trace import Floats

#: Tokens of the run's context, the newest ones, that go into the batch: one forward stays about as dear as a prefill.
MAX_TOKENS = 32
#: The text beside it.
SECOND = "Once upon a time"

#: mask: left, mask and positions right. columns: left, mask right, positions 0, 1, 2 … by column. no_mask: left,
#: nothing hidden, positions by column. right_read: filled up on the right, read at each row's last token. right_last:
#: the same, read at the last column.
WAYS: tuple[Way, ...] = ("mask", "columns", "no_mask", "right_read", "right_last")


@dataclass(frozen=True, eq=False)
class Batch:
    """What one forward of both rows is fed, and the column that is read in each. All [2, w] int64."""

    ids: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor
    read: tuple[int, ...]  # one a row


def padding(conversation: Conversation, *, turn: int | None = None) -> Padding:
    """The context of a turn (None: the current) up to the last position fed, beside a short fixed text.

    Each text alone and both in a batch, one forward a way, without a cache. Raises `ExperimentError` for a turn that is
    not there.
    """
    loaded = conversation.loaded
    turn, context = context_of(conversation, turn, None)
    words = vocabulary(loaded.tokenizer)
    rows = _rows(context, loaded.tokenizer.encode(SECOND, add_special_tokens=False))
    pad = _pad_id(conversation)
    batches = {way: _batch(rows, pad, way, loaded.device) for way in WAYS}
    with torch.inference_mode():
        alone = [_logits(conversation, _alone(row, loaded.device))[0] for row in rows]
        tried = tuple(_tried(conversation, way, batch, alone) for way, batch in batches.items())
    left = batches["mask"]
    ids = left.ids.int().numpy(force=True)
    best = [int(one.argmax()) for one in alone]
    names = [tuple(words.bytes(token) for token in row) for row in ids.tolist()]
    return Padding(
        turn=turn,
        whole=len(context),
        second=SECOND,
        padded_row=int(len(rows[1]) < len(rows[0])),
        pad_id=pad,
        pad_bytes=words.bytes(pad),
        token_ids=ids,
        token_bytes=(names[0], names[1]),
        attention_mask=left.mask.int().numpy(force=True),
        positions_by_mask=left.positions.int().numpy(force=True),
        positions_by_column=batches["columns"].positions.int().numpy(force=True),
        positions=_kind(conversation),
        alone_ids=np.array(best, np.int32),
        alone_bytes=(words.bytes(best[0]), words.bytes(best[1])),
        alone_probabilities=_probabilities(alone, best),
        tried=tried,
    )


def _rows(context: tuple[int, ...], second: list[int]) -> tuple[list[int], list[int]]:
    """Two rows of different length: where both are as long, the second loses its first tokens (or the context its)."""
    first = list(context[-MAX_TOKENS:])
    if len(first) == len(second):
        return first, second[1:] if len(second) > 1 else second * 2
    return first, second


def _pad_id(conversation: Conversation) -> int:
    """The tokenizer's own filling, else an end-of-sequence mark: hidden as it is, it could be any id."""
    pad = conversation.loaded.tokenizer.pad_token_id
    ends = conversation.loaded.facts.eos_ids
    return int(pad) if isinstance(pad, int) else next(iter(ends), 0)


def _kind(conversation: Conversation) -> Literal["learned", "rotary", "other"]:
    decoder = conversation.loaded.model.get_decoder()
    if any(hasattr(decoder, name) for name in ("wpe", "embed_positions")):
        return "learned"
    return "rotary" if hasattr(decoder, "rotary_emb") else "other"


def _batch(rows: tuple[list[int], list[int]], pad: int, way: Way, device: torch.device) -> Batch:
    width = max(len(row) for row in rows)
    right = way in ("right_read", "right_last")
    ids, masks = [], []
    for row in rows:
        filling = width - len(row)
        ids.append([*row, *[pad] * filling] if right else [*[pad] * filling, *row])
        real, hidden = [1] * len(row), [0] * filling
        masks.append([*real, *hidden] if right else [*hidden, *real])
    mask = torch.tensor(masks, device=device)
    columns = torch.arange(width, device=device).expand(2, -1)
    return Batch(
        ids=torch.tensor(ids, device=device),
        mask=torch.ones_like(mask) if way == "no_mask" else mask,
        positions=columns if way in ("columns", "no_mask") else positions_from_mask(mask),
        read=(len(rows[0]) - 1, len(rows[1]) - 1) if way == "right_read" else (width - 1, width - 1),
    )


def _alone(row: list[int], device: torch.device) -> Batch:
    ids = torch.tensor([row], device=device)
    mask = torch.ones_like(ids)
    return Batch(ids, mask, positions_from_mask(mask), (len(row) - 1,))


def _logits(conversation: Conversation, batch: Batch) -> list[torch.Tensor]:
    """The logits [vocab] float32 that are read in each row; the other columns do not go through the output head."""
    columns = sorted(set(batch.read))
    output = conversation.loaded.model(
        input_ids=batch.ids,
        attention_mask=batch.mask,
        position_ids=batch.positions,
        use_cache=False,
        logits_to_keep=torch.tensor(columns, device=batch.ids.device),
    )
    return [row[columns.index(read)].float() for row, read in zip(output.logits, batch.read, strict=True)]


def _tried(conversation: Conversation, way: Way, batch: Batch, alone: list[torch.Tensor]) -> Tried:
    logits = _logits(conversation, batch)
    words = vocabulary(conversation.loaded.tokenizer)
    best = [int(row.argmax()) for row in logits]
    return Tried(
        way=way,
        max_differences=np.array([float((a - b).abs().max()) for a, b in zip(logits, alone, strict=True)], np.float32),
        best_ids=np.array(best, np.int32),
        best_bytes=(words.bytes(best[0]), words.bytes(best[1])),
        alone_probabilities=_probabilities(logits, [int(one.argmax()) for one in alone]),
    )


def _probabilities(logits: list[torch.Tensor], ids: list[int]) -> Floats:
    return np.array(
        [float(row.softmax(dim=-1)[token]) for row, token in zip(logits, ids, strict=True)], dtype=np.float32
    )
