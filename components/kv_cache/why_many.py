"""Why a decode step fed more than the newest token."""

from components.copy import words
from engine.trace import Stepped, Trace


def why_many(trace: Trace, step: Stepped) -> str:
    """Of the three causes the one that holds, as far as the trace tells."""
    say, context = words("kv_cache"), trace.experiment.context
    if "keys" not in step.shapes:
        return say.text("fed_no_cache")
    if context.strategy == "sliding_window" and context.positions == "restart" and step.kv_tokens < step.position:
        return say.text("fed_restart", kv_tokens=step.kv_tokens)
    return say.text("fed_rebuilt", kv_tokens=step.kv_tokens)
