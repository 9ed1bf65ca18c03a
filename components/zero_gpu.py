"""A GPU that is lent for seconds (ZeroGPU): the lender's decorator, with its errors said in the page's words."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from queue import Empty
from typing import Any

import gradio as gr
import httpx

from components.copy import words
from engine.refusals import NoGpu

#: Of the lender's error titles, the section that tells what they mean for the visitor.
BY_TITLE = {
    "ZeroGPU quota exceeded": "quota",
    "ZeroGPU pending credits exceeded": "quota",
    "ZeroGPU illegal duration": "quota",
    "ZeroGPU queue timeout": "queue",
    "ZeroGPU worker error": "worker",
    "ZeroGPU client error": "unavailable",
}

ABORTED = "GPU task aborted"

#: Begins what the lender says of a kind of app that this is not.
OF_EXAMPLES = "Try re-running outside of examples"


def lent(decorator: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator, whose functions raise `NoGpu` where the GPU cannot be had or was taken away."""

    def gpu(*, duration: Callable[..., int]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def decorate(task: Callable[..., Any]) -> Callable[..., Any]:
            far = decorator(duration=duration)(task)
            if inspect.isgeneratorfunction(task):

                @wraps(task)
                def stream(*arguments: Any) -> Iterator[Any]:
                    with plainly():
                        yield from far(*arguments)

                return stream

            @wraps(task)
            def once(*arguments: Any) -> Any:
                with plainly():
                    return far(*arguments)

            return once

        return decorate

    return gpu


@contextmanager
def plainly() -> Iterator[None]:
    """Turn what the lender raises inside into `NoGpu`. What goes wrong in a call comes as its `gr.Error` too."""
    try:
        yield
    except gr.Error as error:
        raise NoGpu(_said(str(getattr(error, "title", "")), str(error.message))) from error
    except (RuntimeError, OSError, Empty, httpx.HTTPError) as error:
        raise NoGpu(_said("ZeroGPU client error", type(error).__name__)) from error


def _said(title: str, message: str) -> str:
    key = BY_TITLE.get(title, "unavailable")
    if key == "worker" and ABORTED in message:
        key = "aborted"
    detail = " ".join(message.partition(OF_EXAMPLES)[0].split())
    return words("zero_gpu").text(key, detail=detail[:200].rstrip(" ."))
