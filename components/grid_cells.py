"""What a person asks of a grid: numbers with commas between them become settings, a cell's setting an experiment."""

import math
from typing import Any

from components.compose import whole
from components.copy import words
from engine.answers.grid import grid_of
from engine.experiment import Experiment
from engine.refusals import Refused

MAX_CELLS = 12
MAX_TOKENS = 32  # of a cell; the run that a chosen cell becomes has its full length


def overrides(temperatures: str, seeds: str) -> list[dict[str, Any]]:
    """Every temperature with every seed, row by row. Raises `Refused` for what is no number, and for too many."""
    hot, lots = _numbers("temperatures", temperatures, "0, 0.7, 1.2"), _numbers("seeds", seeds, "1, 2")
    count = len(hot) * len(lots)
    if count > MAX_CELLS:
        raise Refused(
            words("compare").text("too_many", most=MAX_CELLS, temperatures=len(hot), seeds=len(lots), count=count)
        )
    return grid_of([float(number) for number in hot], [int(seed) for seed in lots])


def shortened(experiment: Experiment) -> dict[str, Any]:
    """The experiment of a grid: as many tokens as a glance needs."""
    data = experiment.model_dump()
    data["stop"]["max_new_tokens"] = min(data["stop"]["max_new_tokens"], MAX_TOKENS)
    return data


def cell_experiment(experiment: Experiment, own: dict[str, Any]) -> dict[str, Any]:
    data = experiment.model_dump()
    data["sampling"] |= own
    return data


def _numbers(field: str, text: str, example: str) -> list[float]:
    say = words("compare")
    wrong = "bad_whole_number" if field == "seeds" else "bad_number"
    found = []
    for part in (text or "").replace(";", ",").split(","):
        if not part.strip():
            continue
        try:
            number = float(part)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (field == "seeds" and not number.is_integer()):
            raise Refused(say.text(wrong, field=say.text(field), text=part.strip()[:20], example=example))
        exact = whole(part.strip())  # a seed may have more digits than a float keeps
        found.append(exact if isinstance(exact, int) else number)
    if not found:
        raise Refused(say.text(wrong, field=say.text(field), text="“”", example=example))
    return list(dict.fromkeys(found))
