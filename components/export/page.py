"""A run as one HTML file that needs no server: every widget's value at every place, and the page's own scripts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from components.copy import words
from components.export.document import document, room
from components.export.layout import layouts, widget_ids, without
from components.export.pieces import pack_columns, squeezed
from components.export.places import PROMPT_POSITIONS, Look, Place, places
from components.export.shots import shoot
from components.panel import Cursor
from components.panels import PANELS
from engine.refusals import Refused

VERSION = 1
#: What is said while the data is not there, or cannot be.
SENTENCES = ("loading", "no_script", "no_inflate", "damaged")
#: Bytes of a file. The essential panels of a long run may take more.
LIMIT = 3_000_000
#: Tokens at which every panel is drawn; that takes the processor a tenth of a second each.
MOST_PLACES = 600
#: Words that the script shows as they are.
WORDS = (
    *("experiment", "theme_dark", "theme_light", "player", "play", "pause", "previous", "next"),
    *("slider", "turn", "head", "keys", "not_here", "token_here"),
)


def page(look: Look, *, language: str, heads: Sequence[tuple[int, int]] = ((0, 0),)) -> str:
    """The file in the language of the context, which `language` names.

    Args:
        look: what is shown where the cursor stands, of a run that has at least a rendered prompt.
        heads: layer and head of each attention head to be shown at every place.

    Raises:
        Refused: nothing was run, or too much.
    """
    whole = look(Cursor())
    stood = places(whole)
    if not stood or whole.trace is None:
        raise Refused(words("record").text("nothing"))
    say = words("record_page")
    if len(stood) > MOST_PLACES:
        raise Refused(say.text("too_long", most=MOST_PLACES, count=len(stood)))
    sentences = {name: say.text(name) for name in SENTENCES}
    panels = layouts(PANELS)
    ids = {name: widget_ids(one["parts"]) for name, one in panels.items()}
    shots = shoot(look, stood, heads, ids, room=room(LIMIT, sentences))
    data = {
        "version": VERSION,
        "words": {name: say.text(name) for name in WORDS}
        | {
            "intro": say.intro,
            "footer": say.text("footer", version=VERSION),
            "prompt_here": say.text("prompt_here", count=PROMPT_POSITIONS),
        },
        "model": f"{whole.facts.title} · {whole.facts.dtype}",
        "made": say.text("made_with", versions=", ".join(map(" ".join, whole.trace.versions.items()))),
        "experiment": json.dumps(whole.trace.experiment.model_dump(mode="json"), ensure_ascii=False, indent=1),
        "names": {name: words("page").text(name) for name in ("rail", "conversation", "timeline", "status", "notice")},
        "panels": [_shown(panels[panel.STATION], shots.values) for panel in shots.panels],
        "owner": {one.id: panel.STATION for panel in shots.panels for one in panel.stations(whole)},
        "places": [[place.turn, place.position, place.step] for place in stood],
        "where": [_where(place, stood) for place in stood],
        "turns": [say.text("turn_number", turn=turn + 1) for turn in range(whole.trace.turns)],
        "heads": [[layer, head, say.text("head_number", layer=layer, head=head)] for layer, head in heads],
    }
    return document(
        language=language,
        title=say.text("title", model=whole.facts.title),
        data=squeezed(data | pack_columns(shots.values)),
        sentences=sentences,
    )


def _shown(panel: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A panel's layout without the widgets that show nothing anywhere, and without their headings."""
    gone = {name for name in widget_ids(panel["parts"]) if name not in values}
    parts = without(panel["parts"], gone | {f"{name}-heading" for name in gone})
    return {**panel, "parts": parts}


def _where(place: Place, stood: Iterable[Place]) -> str:
    say = words("record_page")
    if place.step is None:
        return say.text("where_prompt", position=place.position)
    last = max(one.step or 0 for one in stood if one.turn == place.turn)
    return say.text("where_step", step=place.step, last=last, position=place.position)
