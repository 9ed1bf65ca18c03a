"""A decoder layer worked out by hand: each operation from our own result before it, beside what the model's gave."""

import torch

from engine.anatomy import Block
from engine.answers.layer import Operation
from engine.probes import by_hand
from engine.probes.layer_heads import attend
from engine.probes.layer_parts import find_feed_forward
from engine.probes.layer_sheet import Sheet
from engine.probes.watched import Seen


def work(seen: Seen) -> list[Operation]:
    """All operations of the layer in order. Raises `AnatomyError` for one that cannot be worked out by hand."""
    sheet, block = Sheet(seen), seen.block
    whole, second = seen.calls[block.module], seen.calls[block.feed_forward_norm]
    before = whole.given.float().flatten()
    normed = sheet.norm("norm", "attention_norm", block.attention_norm, before)
    mixed = attend(sheet, normed)
    added = sheet.linear("output", "output", _output(block), mixed.flatten())
    if block.after_attention is not None:
        added = sheet.norm("output", "output_norm", block.after_attention, added)
    between = _add(sheet, "residual", before, added, second.given)
    normed = sheet.norm("second_norm", "feed_forward_norm", block.feed_forward_norm, between)
    added = _feed_forward(sheet, normed)
    if block.after_feed_forward is not None:
        added = sheet.norm("feed_forward", "down_norm", block.after_feed_forward, added)
    _add(sheet, "second_residual", between, added, whole.gave)
    return sheet.operations


def _feed_forward(sheet: Sheet, normed: torch.Tensor) -> torch.Tensor:
    seen = sheet.seen
    parts = find_feed_forward(seen.block)
    name = by_hand.find_activation(parts.activation, normed.device)
    active = by_hand.ACTIVATIONS[name]
    # The activation is a module in most families; what it gave is then the model's own.
    gave = seen.gave(parts.activation) if isinstance(parts.activation, torch.nn.Module) else None
    inner = seen.calls[parts.down.module].given
    if parts.gate is None:
        up = sheet.linear("feed_forward", "up", parts.up, normed)
        hidden = sheet.add("feed_forward", "active", name, active(up), inner)
    else:
        gate = sheet.linear("feed_forward", "gate", parts.gate, normed)
        up = sheet.linear("feed_forward", "up", parts.up, normed)
        open_gate = sheet.add("feed_forward", "active", name, active(gate), gave)
        hidden = sheet.add("feed_forward", "gated", "gated", open_gate * up, inner)
    return sheet.linear("feed_forward", "down", parts.down, hidden)


def _add(sheet: Sheet, stage: str, stream: torch.Tensor, added: torch.Tensor, model: torch.Tensor) -> torch.Tensor:
    """The stream with what a part adds; some families (Granite) scale every addition by one number."""
    factor = sheet.seen.block.multiplier
    return sheet.add(
        stage, stage, "sum" if factor == 1 else "scaled_sum", stream + added * factor, model, factor=factor
    )


def _output(block: Block) -> by_hand.Linear:
    named = block.attention.named_children()
    name = next(name for name, child in named if child is block.output_projection)
    return by_hand.read_linear(block.output_projection, name)
