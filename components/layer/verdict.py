"""What the comparison comes to, in words, and the strip on which a layer is chosen."""

from typing import Any

import numpy as np

from components.copy import sentences, words
from components.layer.figures import difference_text
from components.widgets import heatmap, token_strip
from components.widgets.token_strip import Group
from engine.answers.layer import LayerAt


def holds(found: LayerAt) -> bool:
    """No operation differs by more than roundings explain; False where one is not a number."""
    return found.largest <= found.expected


def verdict_value(found: LayerAt) -> dict[str, Any]:
    """One sentence, what was compared with what, and which heads share keys and values."""
    say = words("layer")
    compared = sum(operation.difference is not None for operation in found.operations)
    largest, expected = difference_text(found.largest), f"{found.expected:g}"
    sentence = say.text(
        "verdict" if holds(found) else "verdict_off",
        count=len(found.operations), largest=largest, expected=expected,
    )  # fmt: skip
    notes = [
        say.text(
            "compared",
            layer=found.layer,
            position=found.position,
            compared=compared,
            worst=say.text(f"op_{found.worst}"),
            whole=difference_text(found.whole),
            rest=len(found.operations) - compared,
        ),
        say.text("chain"),
    ]
    if found.dtype != "float32":
        notes.append(say.text("roundings", dtype=found.dtype, expected=expected))
    groups = [Group([], label=sentence, note=sentences(*notes), as_text=True)]
    if found.heads != found.kv_heads:
        group = found.heads // found.kv_heads
        title = say.text("shared_title", heads=found.heads, kv_heads=found.kv_heads)
        shared = say.text("shared", times=found.heads / found.kv_heads, group=group)
        groups.append(Group([], label=title, note=shared, as_text=True))
    return token_strip.value(groups)


def strip_value(found: LayerAt) -> dict[str, Any]:
    """The layers beside each other, each with the norm of the stream that it reads."""
    say, layers = words("layer"), len(found.stream)
    scale = np.log10(np.maximum(found.stream, 1e-6))[None]
    low, high = float(scale.min()), float(scale.max())
    return heatmap.value(
        scale,
        x=[str(layer) for layer in range(layers)],
        y=[say.text("strip_row")],
        label=say.text("strip_label", layers=layers),
        low=low,
        high=high if high > low else low + 1,
        unit=say.text("strip_unit"),
        selected=(0, found.layer),
        keys={"layer": ("column", 0)},
    )
