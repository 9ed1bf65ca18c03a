"""Any token looked up by its text: what every stage made of it, however unlikely it is."""

from typing import Any

from components.copy import words
from components.panel import View
from components.widgets import table
from components.widgets.table import Column
from engine.trace import Stepped


def lookup_table(view: View, step: Stepped) -> dict[str, Any]:
    """Logit, probability and rank of the looked-up token after every stage of `step`."""
    say = words("sampling")
    columns = [
        Column(say.text("col_stage")),
        Column(say.text("col_logit"), align="right"),
        Column(say.text("col_probability"), align="right"),
        Column(say.text("col_rank"), align="right"),
    ]
    if view.probe is None:
        return table.value(columns, [], caption=say.text("lookup_unavailable"))
    return table.value(columns, [], caption=say.text("lookup_empty"))
