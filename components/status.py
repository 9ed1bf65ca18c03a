"""What is said of the run as a whole: where we are, how fast it goes, what the cache holds; and what ended it badly."""

from statistics import median

from components.copy import words
from components.in_words import translated
from components.panel import View
from components.sampling.candidates import stage_name
from components.units import bytes_text
from components.widgets.rail import Station


def stations(view: View) -> list[Station]:
    """The footer's entries for the selected step; the checks follow them."""
    say = words("page")
    step = view.step
    entries = []
    if step is not None:
        entries.append(Station("where", "", say.text("where", position=step.position, step=step.step), ""))
    speed = _speed(view)
    if speed:
        entries.append(Station("speed", "", speed, ""))
    if step is not None:
        held = say.text("cache", tokens=step.kv_tokens, size=bytes_text(step.kv_bytes))
        entries.append(Station("cache", "", held, ""))
    return entries


def time_to_first_token(view: View) -> float | None:
    """Seconds from the prefill's start to the first token chosen, queueing left out."""
    if view.trace is None or not view.steps:
        return None
    prefilled = view.trace.prefilled(view.cursor.turn)
    first = view.steps[0]
    return (prefilled.seconds if prefilled else 0.0) + first.seconds + first.overhead_seconds


def tokens_per_second(view: View) -> float | None:
    """1 / the median time of the decode steps so far; the first step has no forward of its own."""
    times = [step.seconds + step.overhead_seconds for step in view.steps if step.seconds > 0]
    return 1 / median(times) if times else None


def _speed(view: View) -> str:
    say = words("page")
    rate, first = tokens_per_second(view), time_to_first_token(view)
    parts = [say.text("rate", rate=rate)] if rate else []
    parts += [say.text("ttft", seconds=first)] if first is not None else []
    return " · ".join(parts)


def failure(view: View) -> str:
    """Why no further token can come, where that was no ordinary end; "" where there is nothing to tell."""
    stopped = view.trace.stopped(view.cursor.turn) if view.trace else None
    if stopped is None:
        return ""
    if stopped.reason == "no_candidate":
        return words("stopping").text("decided_no_candidate", stage=stage_name(str(stopped.evidence["stage"])))
    if stopped.reason != "error":
        return ""
    return ": ".join(part for part in (stopped.evidence["field"], translated(stopped.evidence["message"])) if part)
