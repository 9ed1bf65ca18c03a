"""One run: a loop of steps that re-submits itself on the worker, and the readers that follow its newest frame."""

import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from engine.worker import Serves

Frame = TypeVar("Frame")


class Run(Generic[Frame]):
    """A loop on the worker thread. `step(stopping)` does one piece of work and returns (frame, go on?).

    The next step is queued as soon as one ends, so a slow reader never slows the model; a reader sees the newest
    frame and misses those in between. Once `stopping` is True the step must wind up and return False.
    """

    def __init__(self, worker: Serves, visitor: Hashable, step: Callable[[bool], tuple[Frame, bool]]) -> None:
        self._worker = worker
        self._visitor = visitor
        self._step = step
        self._changed = threading.Condition()
        self._frames = 0
        self._newest: Frame | None = None
        self._readers = 0
        self._error: BaseException | None = None
        self.stopping = False
        self.ended = False

    def begin(self) -> None:
        """Queue the next step, the first one from outside."""
        self._worker.submit(self._visitor, self._take_step).add_done_callback(self._end_if_broken)

    def stop(self) -> None:
        """Ask for the end: no further token is made; the step that is running ends as it would."""
        self.stopping = True

    def wait(self) -> None:
        """Return when the loop has ended, however it ended."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended)

    def follow(self) -> Iterator[Frame]:
        """The newest frame each time there is one, the last frame for certain, until the loop ends.

        The run stops when the last of its readers leaves before its end. Raises what a step raised.
        """
        with self._changed:
            self._readers += 1
        seen = 0
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda seen=seen: self._frames > seen or self.ended)  # type: ignore[misc]
                    frame, fresh, seen, ended = self._newest, self._frames > seen, self._frames, self.ended
                if fresh and frame is not None:
                    yield frame
                if ended:
                    break
        finally:
            with self._changed:
                self._readers -= 1
                if self._readers == 0:
                    self.stopping = True
        if self._error is not None:
            raise self._error

    def _take_step(self) -> None:
        frame, more = self._step(self.stopping)
        with self._changed:
            if frame is not self._newest:
                self._newest = frame
                self._frames += 1
                self._changed.notify_all()
        if more:
            self.begin()
        else:
            self._end(None)

    def _end_if_broken(self, future: Future[None]) -> None:
        if future.cancelled():
            self._end(None)
        elif future.exception() is not None:
            self._end(future.exception())

    def _end(self, error: BaseException | None) -> None:
        with self._changed:
            self._error = error
            self.ended = True
            self._changed.notify_all()


def last_of(frames: Iterator[Frame], newest: Frame) -> Frame:
    """The last of the frames, `newest` where there is none."""
    for frame in frames:
        newest = frame
    return newest
