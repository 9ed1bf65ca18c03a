"""Rotary positions: how fast each pair of dimensions turns, and where it stands at each position."""

from typing import Any

import numpy as np

from components.copy import listed, sentences, words
from components.drawing import Drawing, drawing
from components.embedding.told import column_keys, told_note
from components.panel import View
from components.widgets import heatmap, table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.rotary import Rotary, Turning

COLOURS = ("var(--s3)", "var(--s4)")


def angles_note(found: Rotary, layer: int, layers: int) -> dict[str, Any]:
    """How many dimensions turn, how fast the first and the last pair do, and what the config says about it."""
    say = words("embedding")
    shown = turning_of(found, layer)
    lengths = shown.wavelengths
    parts = [
        say.text(
            "rotary_said",
            turning=_who(found, layers),
            pairs=len(lengths),
            rotated=shown.rotated,
            head_dim=found.head_dim,
            shortest=length_text(float(lengths.min())),
            longest=length_text(float(lengths.max())),
        ),
        say.text("rotary_partial", rest=found.head_dim - shown.rotated) if shown.rotated < found.head_dim else "",
        _pairing(shown),
        _config(shown),
        say.text("rotary_stretched", scaling=shown.scaling, square=shown.scaling**2) if shown.scaling != 1 else "",
        _slow(found, shown),
    ]
    notes = [
        *told_note(found),
        Group([], note=sentences(*parts), as_text=True),
    ]
    if not is_turning(found, layer):
        note = say.text("rotary_not_here", turning=_ranges(tuple(sorted(_turning_layers(found)))))
        title = say.text("rotary_not_here_title", layer=layer)
        return token_strip.value([*notes, Group([], label=title, note=note, as_text=True)])
    notes.append(Group([], label=say.text("picture_title"), note=say.text("picture"), as_text=True))
    if len(found.turnings) > 1:
        kinds = listed(
            say.text("rotary_kind", kind=name(one), layers=_ranges(one.layers), theta=one.theta or 0)
            for one in found.turnings
        )
        note = say.text("rotary_kinds", kinds=kinds, layer=layer, kind=name(shown))
        notes.append(Group([], label=say.text("rotary_kinds_title"), note=note, as_text=True))
    return token_strip.value(notes)


def is_turning(found: Rotary, layer: int) -> bool:
    """Whether a layer turns its queries and keys."""
    return layer in _turning_layers(found)


def turning_of(found: Rotary, layer: int) -> Turning:
    """The way in which a layer turns; the first one where that layer turns in none."""
    return next((one for one in found.turnings if layer in one.layers), found.turnings[0])


def name(turning: Turning) -> str:
    """The config's name for such layers, as words."""
    return (turning.kind or "").replace("_", " ")


def length_text(length: float) -> str:
    """Positions until a pair has come round."""
    return "∞" if not np.isfinite(length) else f"{length:,.1f}" if length < 100 else f"{length:,.0f}"


def wavelengths_figure(found: Rotary, height: int) -> Drawing:
    """Positions to one whole turn by pair, on a logarithmic axis, with the model's context as a line."""
    say = words("embedding")
    several = len(found.turnings) > 1
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": list(range(len(one.frequencies))),
            "y": [float(f"{length:.5g}") if np.isfinite(length) else None for length in one.wavelengths],
            "name": name(one) if several else say.text("wavelength"),
            "line": {"color": COLOURS[index % len(COLOURS)], "width": 1.8},
            "marker": {"color": COLOURS[index % len(COLOURS)], "size": 5},
            "hovertext": [
                say.text("hover_pair", pair=pair, length=length_text(float(length)), degrees=np.degrees(float(angle)))
                for pair, (length, angle) in enumerate(zip(one.wavelengths, one.here, strict=True))
            ],
            "hoverinfo": "text",
        }
        for index, one in enumerate(found.turnings)
    ]
    most = max(len(one.frequencies) for one in found.turnings)
    context = {
        "type": "scatter",
        "mode": "lines",
        "x": [-0.5, most - 0.5],
        "y": [found.context] * 2,
        "line": {"color": "var(--dim)", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
        "name": say.text("context_line", context=found.context),
    }
    return drawing(
        height,
        [*traces, context],
        margin={"l": 56, "r": 12, "t": 28, "b": 36},
        showlegend=True,
        xaxis={"title": {"text": say.text("axis_pair")}, "dtick": 4 if most > 12 else 1, "range": [-0.5, most - 0.5]},
        yaxis={"title": {"text": say.text("axis_wavelength")}, "type": "log", "dtick": 1, "tickformat": ",d"},
    )


def angles_numbers(found: Rotary, layer: int) -> dict[str, Any]:
    """One pair a line: its dimensions, its speed, its wavelength, and where it stands at the position in sight."""
    say, shown = words("embedding"), turning_of(found, layer)
    keys = ("col_pair", "col_dimensions", "col_speed", "col_wavelength", "col_turns", "col_angle")
    columns = [Column(say.text(key), align="right") for key in keys]
    lines = zip(shown.frequencies, shown.wavelengths, shown.here, strict=True)
    rows: list[list[Cell | str]] = [
        [
            str(pair),
            dimensions(shown, pair),
            f"{float(speed):.3g}",
            length_text(float(length)),
            f"{found.told * float(speed) / (2 * np.pi):,.3f}",
            f"{np.degrees(float(angle)):+.1f}°",
        ]
        for pair, (speed, length, angle) in enumerate(lines)
    ]
    return table.value(columns, rows, caption=say.text("angles_caption", position=found.told))


def dimensions(turning: Turning, pair: int) -> str:
    """The two dimensions of a pair."""
    if turning.apart is None:
        return "–"
    first = 2 * pair if turning.apart == 1 else pair
    return f"{first}, {first + turning.apart}"


def angles_map(found: Rotary, view: View) -> dict[str, Any]:
    """Pairs × positions: the cosine of the angle, from −1 (half way round) to 1 (where it started)."""
    shown = turning_of(found, view.cursor.layer)
    positions = found.positions.tolist()
    return heatmap.value(
        np.cos(shown.angles.T),
        x=[str(at) for at in positions],
        y=[f"{pair} · {length_text(float(length))}" for pair, length in enumerate(shown.wavelengths)],
        label=words("embedding").text("angles_map_label", pairs=len(shown.frequencies), count=len(positions)),
        low=-1.0,
        high=1.0,
        unit=words("embedding").text("unit_cosine"),
        selected=(0, positions.index(found.told)),
        column_keys=column_keys(found, view, positions),
    )


def _turning_layers(found: Rotary) -> set[int]:
    return {layer for one in found.turnings for layer in one.layers}


def _who(found: Rotary, layers: int) -> str:
    say, count = words("embedding"), len(_turning_layers(found))
    return say.text("rotary_each") if count == layers else say.text("rotary_some", count=count, layers=layers)


def _pairing(shown: Turning) -> str:
    say = words("embedding")
    if shown.apart is None:
        return ""
    return say.text("rotary_pairs_beside" if shown.apart == 1 else "rotary_pairs_half", apart=shown.apart)


def _config(shown: Turning) -> str:
    say = words("embedding")
    if shown.theta is None:
        return ""
    if shown.variant == "default":
        return say.text("rotary_theta", theta=shown.theta)
    if shown.factor is None:
        return say.text("rotary_variant", theta=shown.theta, variant=shown.variant)
    return say.text("rotary_variant_factor", theta=shown.theta, variant=shown.variant, factor=shown.factor)


def _slow(found: Rotary, shown: Turning) -> str:
    slow = int(np.sum(shown.wavelengths > found.context))
    return words("embedding").text("rotary_slow", count=slow, context=found.context) if slow else ""


def _ranges(layers: tuple[int, ...]) -> str:
    """The first few layers by number."""
    return ", ".join(map(str, layers[:8])) + ("…" if len(layers) > 8 else "")
