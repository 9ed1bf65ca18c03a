"""The page over the desk of a test. Laying it out and wiring it takes a second, so a process does it once a form."""

import functools
from collections.abc import Callable
from typing import Any

from components.desk import Desk
from components.page import Page
from engine.experiment import Experiment
from engine.settings import Settings


class Behind:
    """Stands behind a page in the place of a desk: each call goes on to the desk of the test that runs now."""

    desk: Desk

    @property
    def ready(self) -> bool:
        return self.desk.ready

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given, **named: getattr(self.desk, name)(*given, **named)


@functools.cache
def _wired(default: str) -> Page:
    intents: Any = Behind()
    return Page(intents, Experiment.model_validate_json(default), "Tiny", runs=Settings.max_runs)


def page_over(desk: Desk) -> Page:
    """A page that knows nothing of the tests before: all that it keeps of a desk is which stations there are."""
    page = _wired(desk.default.model_dump_json())
    page.intents.desk = desk
    page.__dict__.pop("owner", None)
    return page
