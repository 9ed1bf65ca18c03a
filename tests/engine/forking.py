"""A stand-in for the decorator of Spaces with ZeroGPU, as strict as the real one.

A call runs in a forked process. What goes in and what comes out is pickled, of an exception only its class's name comes
back, nothing that the process changes in memory does, and a caller who closes the generator stops it at its next yield.
"""

import inspect
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch

from engine.refusals import Refused

FORK = multiprocessing.get_context("fork")


class Forking:
    """To be given as `gpu`; it notes what was asked for and how each call ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], int]] = []  # task, arguments, seconds asked for
        self.yielded = 0
        self.fail_next: Exception | None = None  # raised instead of the next call
        self.abort_after: int | None = None  # the process is killed after so many yields
        self.live = 0

    def __call__(self, *, duration: Callable[..., int]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def decorate(task: Callable[..., Any]) -> Callable[..., Any]:
            def call(arguments: tuple[Any, ...]) -> Iterator[Any]:
                self.calls.append((task.__name__, arguments, duration(*arguments)))
                if self.fail_next:
                    failing, self.fail_next = self.fail_next, None
                    raise failing
                yield from self._in_a_process(task, pickle.dumps(arguments))

            if inspect.isgeneratorfunction(task):

                @wraps(task)
                def stream(*arguments: Any) -> Iterator[Any]:
                    yield from call(arguments)

                return stream

            @wraps(task)
            def once(*arguments: Any) -> Any:
                (found,) = call(arguments)
                return found

            return once

        return decorate

    def _in_a_process(self, task: Callable[..., Any], arguments: bytes) -> Iterator[Any]:
        receiving, sending = FORK.Pipe(duplex=False)
        stop = FORK.Event()
        process = FORK.Process(target=_child, args=(task, arguments, sending, stop), daemon=True)
        process.start()
        sending.close()
        self.live += 1
        try:
            count = 0
            while True:
                kind, value = receiving.recv()
                if kind == "error":
                    raise Refused(f"the GPU's process failed: {value}")
                if kind == "end":
                    return
                self.yielded += 1
                yield pickle.loads(value)
                count += 1
                if count == self.abort_after:
                    process.kill()
                    raise Refused("GPU task aborted")
        except GeneratorExit:
            stop.set()
            raise
        finally:
            while process.is_alive():  # let it end: it may be blocked on what nobody reads
                if receiving.poll(0.01):
                    try:
                        receiving.recv()
                    except EOFError:
                        break
            process.join()
            receiving.close()
            self.live -= 1


def _child(task: Callable[..., Any], arguments: bytes, sending: Any, stop: Any) -> None:
    torch.set_num_threads(1)  # the pool of the process that was forked is not there
    try:
        if not inspect.isgeneratorfunction(task):
            sending.send(("value", pickle.dumps(task(*pickle.loads(arguments)))))
        else:
            for value in task(*pickle.loads(arguments)):
                if stop.is_set():
                    break
                sending.send(("value", pickle.dumps(value)))
    except Exception as error:  # noqa: BLE001 - whatever it is, its name is all that comes back
        sending.send(("error", type(error).__name__))
    sending.send(("end", None))
