"""What a link is about to run, in one sentence."""

from functools import reduce

from components.copy import words
from engine.experiment import Experiment


def contents(experiment: Experiment) -> str:
    """What the experiment holds, before anything of it is run."""
    say = words("sharing")
    sampling = experiment.sampling
    parts = [
        say.text("messages", count=len(experiment.messages)) if experiment.messages else say.text("raw"),
        say.text("greedy") if sampling.greedy else say.text("temperature", temperature=f"{sampling.temperature:g}"),
        say.text("length", count=experiment.stop.max_new_tokens),
    ]
    if experiment.follow_ups:
        parts.insert(1, say.text("follow_ups", count=len(experiment.follow_ups)))
    if experiment.tools:
        parts.append(say.text("tools", names=", ".join(experiment.tools)))
    if experiment.grammar:
        parts.append(say.text("grammar"))
    if experiment.context.strategy != "none":
        parts.append(say.text("strategy"))
    if experiment.forced:
        parts.append(say.text("forced", count=len(experiment.forced)))
    if experiment.obey_marks_in_content:
        parts.append(say.text("obeys"))
    if experiment.mistake:
        parts.append(say.text("mistake"))
    return say.text("holds", parts=reduce(lambda first, second: say.text("and", first=first, second=second), parts))
