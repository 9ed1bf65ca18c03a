"""Direct contributions: which layer's attention or feed-forward moved the logit of the chosen token."""

from typing import Any

import numpy as np

from components.copy import sentences, words
from components.drawing import Drawing, drawing
from components.visible import visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.residual import Residual

ATTENTION, FEED_FORWARD = "var(--s3)", "var(--s4)"


def shares_note(residual: Residual) -> dict[str, Any]:
    """The sum in words, and the part that moved the token most."""
    say = words("residual")
    token = visible_bytes(residual.target_bytes)
    sums = {
        "embedding": residual.embedding_share,
        "attention": float(residual.attention_shares.sum()),
        "feed_forward": float(residual.feed_forward_shares.sum()),
        "constant": residual.constant_share,
    }
    part, layer, share = strongest(residual)
    text = say.text("shares_said" if residual.target_chosen else "shares_guess", token=token)
    moved = say.text(f"moved_{part}", layer=layer, share=share)
    total = say.text("shares_sum", total=residual.uncapped, **sums)
    capped = "" if residual.softcap is None else say.text("shares_cap", cap=residual.softcap, logit=residual.logit)
    return token_strip.value([Group([], label=moved, note=sentences(text, total, capped), as_text=True)])


def strongest(residual: Residual) -> tuple[str, int, float]:
    """The part with the largest share, up or down: "attention" or "feed_forward", its layer, its share."""
    both = {"attention": residual.attention_shares, "feed_forward": residual.feed_forward_shares}
    part = max(both, key=lambda name: float(np.abs(both[name]).max()))
    layer = int(np.abs(both[part]).argmax())
    return part, layer, float(both[part][layer])


def shares_figure(residual: Residual, height: int) -> Drawing:
    """Two bars a layer, attention and feed-forward, up or down from zero."""
    say = words("residual")
    layers = len(residual.attention_shares)
    parts = (
        (say.text("attention"), residual.attention_shares, ATTENTION),
        (say.text("feed_forward"), residual.feed_forward_shares, FEED_FORWARD),
    )
    return drawing(
        height,
        [
            {
                "type": "bar",
                "x": list(range(layers)),
                "y": [round(float(share), 4) for share in shares],
                "name": name,
                "marker": {"color": color},
                "hovertext": [
                    say.text("hover_share", part=name, layer=layer, share=float(share))
                    for layer, share in enumerate(shares)
                ],
                "hoverinfo": "text",
            }
            for name, shares, color in parts
        ],
        barmode="group",
        margin={"l": 50, "r": 12, "t": 28, "b": 36},
        showlegend=True,
        xaxis={"title": {"text": say.text("axis_layer")}, "dtick": 5 if layers > 12 else 1, "showgrid": False},
        yaxis={"title": {"text": say.text("axis_share")}, "zeroline": True, "zerolinecolor": "var(--faint)"},
    )


def shares_numbers(residual: Residual) -> dict[str, Any]:
    """Each part's share, and how far the logit had come after the layer."""
    say = words("residual")
    columns = [Column(say.text(key), align="right") for key in ("col_layer", "col_attention", "col_feed_forward")]
    columns.append(Column(say.text("col_so_far"), align="right", help=say.text("help_so_far")))
    so_far = residual.embedding_share + residual.constant_share
    rows: list[list[Cell | str]] = [[Cell(say.text("row_start"), tone="dim"), "", "", f"{so_far:.2f}"]]
    part, strong, _ = strongest(residual)
    for layer, pair in enumerate(zip(residual.attention_shares, residual.feed_forward_shares, strict=True)):
        so_far += float(sum(pair))
        cells = [
            Cell(f"{share:+.2f}", tone="accent" if (name, layer) == (part, strong) else "")
            for name, share in zip(("attention", "feed_forward"), pair, strict=True)
        ]
        rows.append([str(layer), *cells, f"{so_far:.2f}"])
    return table.value(columns, rows)
