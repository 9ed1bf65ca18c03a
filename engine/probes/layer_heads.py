"""The inside of attention by hand: queries, keys and values, their rotary turn, scores, softmax and mix, all heads."""

import torch
from torch import nn

from engine.anatomy import AnatomyError
from engine.attention import Attended
from engine.probes import by_hand
from engine.probes.layer_parts import find_qkv
from engine.probes.layer_sheet import Sheet, relative_difference
from engine.probes.watched import Seen
from engine.said import said

_PAIRS: tuple[by_hand.Pairs, ...] = ("halves", "neighbours", "none")


def attend(sheet: Sheet, normed: torch.Tensor) -> torch.Tensor:
    """The mixed values [heads, head_dim] at the position, from the stream after the layer's first norm [hidden]."""
    seen = sheet.seen
    attended, attention = seen.attended, seen.block.attention
    heads, kv_heads, head_dim = attended.query.shape[1], attended.key.shape[1], attended.query.shape[3]
    projections = find_qkv(seen.block, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    query, key, value = (
        sheet.linear("projections", name, linear, normed)
        for name, linear in zip(("query", "key", "value"), projections, strict=True)
    )
    for name in ("q_norm", "k_norm"):
        norm = getattr(attention, name, None)
        if isinstance(norm, nn.Module):
            if name == "q_norm":
                query = sheet.norm("projections", "query_norm", norm, query)
            else:
                key = sheet.norm("projections", "key_norm", norm, key)
    query, key = query.reshape(heads, head_dim), key.reshape(kv_heads, head_dim)
    query, key = _turn(sheet, query, key)
    return _mix(sheet, query, key, value.reshape(kv_heads, head_dim))


def _turn(sheet: Sheet, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys turned by the position's angles, where the model gives its attention any angles."""
    seen = sheet.seen
    angles = seen.calls[seen.block.attention].options.get("position_embeddings")
    if angles is None:
        return query, key
    frequencies, scale = _frequencies(seen)
    count, form = len(frequencies), {"position": seen.position, "scale": scale}
    cosines, sines = (
        sheet.add("rotary", name, name, function(seen.position * frequencies) * scale, model.flatten()[:count], **form)
        for name, function, model in (("cosines", torch.cos, angles[0]), ("sines", torch.sin, angles[1]))
    )
    asked, kept = seen.attended.query, seen.attended.key[:, :, -1]
    # How a family pairs the dimensions is measured: it is the way that comes nearest to the model's own queries.
    pairs = min(
        _PAIRS,
        key=lambda way: relative_difference(
            by_hand.rotate(query, cosines, sines, way), asked.float().view(query.shape)
        ),
    )
    values = {"half": count, "turned": 2 * count, "head_dim": query.shape[1], "position": seen.position}
    query, key = (
        sheet.add("rotary", name, f"turn_{pairs}", by_hand.rotate(vectors, cosines, sines, pairs), model, **values)
        for name, vectors, model in (("query_turned", query, asked), ("key_turned", key, kept))
    )
    return query, key


def _frequencies(seen: Seen) -> tuple[torch.Tensor, float]:
    """Angle a position [pairs] float32, and what cosine and sine are multiplied with (1 but for YaRN and its like).

    Models with several kinds of layers keep one set a kind (Gemma 3). Raises `AnatomyError`.
    """
    kind = getattr(seen.block.attention, "layer_type", None)
    for prefix in ("", f"{kind}_"):
        found = getattr(seen.rotary, f"{prefix}inv_freq", None)
        if isinstance(found, torch.Tensor):
            return found.float(), float(getattr(seen.rotary, f"{prefix}attention_scaling", 1.0))
    raise AnatomyError(said("frequencies_unknown", module=type(seen.rotary).__name__))


def _mix(sheet: Sheet, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Scores, scale, mask, softmax, weighted values. The model's fused kernel shows the last of them alone."""
    seen = sheet.seen
    attended, group = seen.attended, len(query) // len(key)
    # [kv_heads, m, head_dim]: those of earlier positions from the cache, the newest one's by hand.
    keys, values = (
        torch.cat([held[0, :, :-1].float(), newest[:, None]], dim=1)
        for held, newest in ((attended.key, key), (attended.value, value))
    )
    m = keys.shape[1]
    one_each = "" if group == 1 else "_shared"
    # The query heads of a group below one another, so that no key is copied for each of them.
    products = query.view(len(key), group, -1) @ keys.transpose(1, 2)
    scores = sheet.add("attention", "scores", f"scores{one_each}", products.reshape(len(query), m), group=group)
    scores = sheet.add("attention", "scaled", "scaled", scores * attended.scaling, scaling=attended.scaling)
    if attended.softcap is not None:
        capped = attended.softcap * torch.tanh(scores / attended.softcap)
        scores = sheet.add("attention", "capped", "capped", capped, softcap=attended.softcap)
    visible, form = _visible(seen, m)
    sheet.add(
        "attention", "mask", form, visible, _model_mask(attended, m),
        seen=int(visible.sum()), count=m, window=seen.window or 0, length=seen.mask_length or 0,
    )  # fmt: skip
    weights = by_hand.softmax(scores.masked_fill(visible == 0, -torch.inf))
    sheet.add("attention", "weights", "softmax", weights)
    mixed = (weights.view(len(key), group, m) @ values).reshape(query.shape)
    return sheet.add("attention", "mixed", f"mixed{one_each}", mixed, attended.output, group=group, count=m)


def _visible(seen: Seen, count: int) -> tuple[torch.Tensor, str]:
    """1 for each of the `count` newest positions that the layer may look at, else 0, and the rule that says so."""
    places = torch.arange(seen.position + 1 - count, seen.position + 1, device=seen.attended.key.device)
    visible = torch.ones(count, device=places.device)
    form = "mask_causal"
    if seen.window is not None:
        visible, form = visible * (seen.position - places < seen.window), "mask_window"
    if seen.mask_length is not None:
        visible, form = visible * (places < seen.mask_length), "mask_short"
    return visible, form


def _model_mask(attended: Attended, count: int) -> torch.Tensor:
    """The mask that the model gave its attention, as 1 and 0; none at all hides nothing of what came before."""
    if attended.mask is None:
        return torch.ones(count, device=attended.key.device)
    row = attended.mask[0, 0, -1]
    return (row if row.dtype == torch.bool else row > -torch.inf).float()
