"""What a selection or a pressed button is about: keys from the browser in, fields of the cursor or arguments out."""

from collections.abc import Mapping
from typing import Any

from components.copy import words
from components.panel import FIGURES, OPERATIONS, View
from engine.refusals import Refused

#: Probes that are asked about the selected step, or about the selected head; the others look at the whole turn.
OF_ONE_STEP = frozenset({"uncached"})
OF_ONE_HEAD = frozenset({"attention_matrix"})
OF_THE_CONTEXT = frozenset({"cold_turn", "lens_map", "norms", "padding", "time_in_prompt"})
OF_A_TEXT = frozenset({"tokenizers"})

#: Characters of a text that is looked up.
LONGEST_QUERY = 200

#: Positions of a lens map, up to the selected one.
MAP_POSITIONS = 32


def as_dict(sent: Any) -> dict[str, Any]:
    """What a widget sent with its event. It comes from the browser, so it may be anything."""
    return sent if isinstance(sent, dict) else {}


def order(sent: Mapping[str, Any]) -> int:
    """The page's number of the choice that was sent, later ones higher; 0 where it has none."""
    number = sent.get("order")
    return number if type(number) is int else 0


def positions(view: View) -> int:
    """How many positions the timeline shows."""
    return (len(view.rendered.token_ids) if view.rendered else 0) + len(view.steps)


def chosen(view: View, key: Mapping[str, Any]) -> dict[str, Any]:
    """Those parts of a selection that name something there is, as fields of the cursor."""
    counts = {"position": positions(view), "layer": view.facts.layers, "head": view.facts.heads}
    if isinstance(key.get("fed"), int):
        # What was fed at a position of the answer is shown with the step that came of it.
        prompt = len(view.rendered.token_ids) if view.rendered else 0
        key = {**key, "position": key["fed"] + (key["fed"] >= prompt)}
    found = {
        name: key[name] for name, count in counts.items() if type(key.get(name)) is int and key[name] in range(count)
    }
    if type(key.get("branch")) is int and any(branch.id == key["branch"] for branch in view.branches):
        found["branch"] = key["branch"]
    if key.get("figure") in FIGURES:
        found["figure"] = key["figure"]
    if key.get("operation") in OPERATIONS:
        found["operation"] = key["operation"]
    if isinstance(key.get("query"), str):
        found["query"] = key["query"][:LONGEST_QUERY]
    return found


def about(probe: str, view: View) -> dict[str, Any]:
    """What a probe that is run at the press of a button is asked about."""
    if probe in OF_ONE_HEAD:
        return {"turn": view.cursor.turn, "layer": view.cursor.layer, "head": view.cursor.head}
    here = view.fed_position
    if probe == "lens_map" and here is not None:
        return {"first": max(0, here + 1 - MAP_POSITIONS), "count": min(here + 1, MAP_POSITIONS)}
    if probe in OF_A_TEXT:
        return {"text": view.cursor.query} if view.cursor.query else {}
    if probe in OF_THE_CONTEXT:
        return {}
    if view.nearest_step is None:
        raise Refused(words("page").text("no_token_yet"))
    return {"step": view.nearest_step.step} if probe in OF_ONE_STEP else {}
