"""Experiments for the endpoint /trace, and what tests want to know of the traces that come back."""

import json
from typing import Any

from tests.e2e.app_server import ROOT

KV_BYTES_PER_TOKEN = 2 * 30 * 3 * 64 * 4  # K and V, layers, KV heads, head_dim, float32


def default_experiment(**changes: Any) -> dict[str, Any]:
    """The experiment that the page opens with; `sampling` and `stop` are changed field by field."""
    experiment: dict[str, Any] = json.loads((ROOT / "assets" / "default_experiment.json").read_text("utf-8"))
    for name, value in changes.items():
        experiment[name] = experiment[name] | value if name in ("sampling", "stop") else value
    return experiment


def events(trace: dict[str, Any], kind: str, turn: int = 0) -> list[dict[str, Any]]:
    return [event for event in trace["events"] if event["kind"] == kind and event["turn"] == turn]


def shown_tokens(trace: dict[str, Any], turn: int = 0) -> list[str]:
    """The turn's tokens as the timeline writes them, for tokens that are whole characters."""
    texts = [bytes(step["token_bytes"]).decode() for step in events(trace, "stepped", turn)]
    return [text.replace(" ", "␣").replace("\n", "⏎") for text in texts]


def answer(trace: dict[str, Any], turn: int = 0) -> str:
    """The text shown for a turn."""
    return "".join(event["text"] for event in events(trace, "stepped", turn) + events(trace, "stopped", turn))
