"""The models that visitors may choose: each is loaded when it is first wanted, and serves as a `Runtime` of its own.

No torch is needed until a model is loaded.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.catalog import Catalog, Entry, ModelError, NoRoomError
from engine.experiment import ExperimentError
from engine.facts import ModelFacts
from engine.loading.memory import needed_bytes
from engine.loading.progress import Progress, Report
from engine.refusals import Refused
from engine.said import said

if TYPE_CHECKING:
    from engine.runtime import Runtime

#: Makes the runtime of an entry and reports how far it has come. Raises `ModelError`.
Loader = Callable[[Entry, Report], "Runtime"]


@dataclass(eq=False)
class Held:
    """One model: on its way, or here. `used` is the time of the last call, on the monotonic clock."""

    entry: Entry
    ready: "Future[Runtime]" = field(default_factory=Future)
    progress: Progress = field(default_factory=lambda: Progress("waiting"))
    used: float = 0.0

    def wait(self, seconds: float) -> bool:
        """True once it is decided whether the model is here; waits no longer than this."""
        ended = threading.Event()
        self.ready.add_done_callback(lambda _: ended.set())
        return ended.wait(seconds)

    @property
    def runtime(self) -> "Runtime":
        """Waits for it. Raises `Refused` with the loader's words where it could not be had."""
        try:
            return self.ready.result()
        except ModelError as error:
            raise Refused(error.args[0]) from error


class ModelsAtHand:
    """Holds the runtimes; every method may be called from any thread.

    One model is loaded at a time. Where memory is short the least recently used one goes, of those that are not
    running; the one that the program started with stays.
    """

    def __init__(self, catalog: Catalog, *, started: str, offered: Sequence[str], loader: Loader) -> None:
        self.catalog = catalog
        self.started = started
        self.offered = tuple(dict.fromkeys((started, *offered)))
        self._loader = loader
        self._held: dict[str, Held] = {}
        self.facts: dict[str, ModelFacts] = {}  # of every model that was here once
        self._lock = threading.Lock()
        self._one_at_a_time = threading.Lock()

    def begin(self, model_id: str) -> Held:
        """The model, whose loading begins in the background where it is not here. Raises `ExperimentError`."""
        self.check(model_id)
        with self._lock:
            held = self._held.get(model_id)
            if held is None:
                held = self._held[model_id] = Held(self.catalog.find(model_id))
                threading.Thread(target=self._load, args=(held,), name=f"load {model_id}", daemon=True).start()
            held.used = time.monotonic()
            return held

    def load_now(self, model_id: str) -> None:
        """Load a model that was not begun, on this very thread. Raises `ModelError`."""
        held = self._held[model_id] = Held(self.catalog.find(model_id))
        self._load(held)
        held.ready.result()

    def loaded(self, model_id: str) -> "Runtime | None":
        """The runtime of a model that is here, else None."""
        with self._lock:
            held = self._held.get(model_id)
            if held is None or not held.ready.done() or held.ready.exception():
                return None
            held.used = time.monotonic()
            return held.ready.result()

    @property
    def at_hand(self) -> tuple[str, ...]:
        """Ids of the models that are here."""
        return tuple(model_id for model_id in self.offered if self.loaded(model_id) is not None)

    def _load(self, held: Held) -> None:
        def report(progress: Progress) -> None:
            held.progress = progress

        with self._one_at_a_time:
            try:
                runtime = self._loader_with_room(held.entry, report)
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the model
                with self._lock:
                    self._held.pop(held.entry.id, None)  # another try may do better
                held.ready.set_exception(error)
                return
            self.facts[held.entry.id] = runtime.facts
            held.used = time.monotonic()
            held.ready.set_result(runtime)

    def _loader_with_room(self, entry: Entry, report: Report) -> "Runtime":
        while True:
            try:
                return self._loader(entry, report)
            except NoRoomError as error:
                if not self._put_one_away(error.missing):
                    raise

    def _put_one_away(self, missing: int) -> bool:
        """Unload the least recently used model that is not running.

        False, with nothing done, where there is none, or where all of them together hold less than is missing.
        """
        with self._lock:
            idle = [
                held
                for model_id, held in self._held.items()
                if model_id != self.started
                and held.ready.done()
                and not held.ready.exception()
                and not held.ready.result().running
            ]
            if not idle or sum(_held_bytes(held.ready.result().facts) for held in idle) < missing:
                return False
            oldest = min(idle, key=lambda held: held.used)
            del self._held[oldest.entry.id]
        oldest.ready.result().shut_down()
        del idle, oldest
        gc.collect()
        if "torch" in sys.modules:
            torch = sys.modules["torch"]
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        return True

    def check(self, model_id: str) -> None:
        """Raise `ExperimentError` for a model that is not offered: nothing else is asked, on disk or elsewhere."""
        if model_id not in self.offered:
            runs = ", ".join(repr(name) for name in self.offered)
            raise ExperimentError("model", said("not_offered", model=model_id, offered=runs))


def _held_bytes(facts: ModelFacts) -> int:
    """What a model that is here takes at most: its weights in the dtype of its numbers, and the overhead."""
    return needed_bytes(facts, facts.dtype)
