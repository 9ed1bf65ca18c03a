"""What every part of the desk may use of the whole: the desk is put together of parts, each one idea."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from components.next_run import NextRun
from components.panel import View
from components.visit import Visit
from engine.experiment import Experiment
from engine.link import Link
from engine.record import Record
from engine.trace import Trace

if TYPE_CHECKING:
    from engine.many_runtimes import ManyRuntimes
    from engine.models_at_hand import ModelsAtHand
    from engine.runtime import Runtime


class DeskPart(ABC):
    """Each of these is done by one part, or by the desk itself. `hand` is None where no model can be chosen."""

    hand: "ModelsAtHand | None"

    @property
    @abstractmethod
    def runtime(self) -> "Runtime | ManyRuntimes": ...
    @property
    @abstractmethod
    def ready(self) -> bool: ...
    @property
    @abstractmethod
    def with_model(self) -> bool: ...
    @abstractmethod
    def view(self, visit: Visit) -> View: ...
    @abstractmethod
    def reopen(self, visit: Visit) -> None: ...
    @abstractmethod
    def stop(self, visit: Visit) -> None: ...
    @abstractmethod
    def ask(self, visit: Visit, probe: str) -> None: ...
    @abstractmethod
    def next_run(self, visit: Visit, message: str, form: dict[str, Any]) -> NextRun: ...
    @abstractmethod
    def play(self, visit: Visit, record: Record, *, made: int | None = None) -> None: ...
    @abstractmethod
    def close_record(self, visit: Visit) -> None: ...
    @abstractmethod
    def run_live(self, visit: Visit) -> None: ...
    @abstractmethod
    def open_lesson(self, visit: Visit, lesson_id: str, note: int = 0) -> None: ...
    @abstractmethod
    def open_link(self, visit: Visit, link: Link) -> None: ...
    @abstractmethod
    def _trace(self, visit: Visit) -> Trace: ...
    @abstractmethod
    def _start(self, visit: Visit, experiment: Experiment, *, branch: bool = False, prepare: bool = True) -> None: ...
    @abstractmethod
    def _go_on(self, visit: Visit, message: str, form: dict[str, Any]) -> None: ...
    @abstractmethod
    def _probe(self, visit: Visit, name: str, *, branch: int | None = None, **arguments: Any) -> Any: ...
    @abstractmethod
    def _found(self, visit: Visit, name: str, branch: int | None, arguments: dict[str, Any]) -> Any: ...
    @abstractmethod
    def _forget(self, visit: Visit) -> None: ...
    @abstractmethod
    def _experiment(self, visit: Visit, form: dict[str, Any], messages: Sequence[dict[str, str]]) -> Experiment: ...
