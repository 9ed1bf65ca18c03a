"""What the lender of a GPU raises reaches the visitor as a plain notice; everything else passes through unchanged."""

from queue import Empty

import gradio as gr
import httpx
import pytest

from components.zero_gpu import lent
from engine.experiment import ExperimentError
from engine.refusals import Refused

CASES = [
    (gr.Error("You have exceeded your free ZeroGPU quota (50s\nrequested)", title="ZeroGPU quota exceeded"), "used up"),
    (
        gr.Error(
            "Space app has reached its GPU limit. Try re-running outside of examples if", title="ZeroGPU quota exceeded"
        ),
        r"\(Space app has reached its GPU limit\)",
    ),
    (gr.Error("larger than the maximum allowed", title="ZeroGPU illegal duration"), "used up"),
    (gr.Error("No GPU was available after 60s", title="ZeroGPU queue timeout"), "No GPU came free"),
    (gr.Error("GPU task aborted", title="ZeroGPU worker error"), "taken back"),
    (gr.Error("KeyError", title="ZeroGPU worker error"), r"failed on the GPU \(KeyError\)"),
    (gr.Error("No GPU was available", title="ZeroGPU client error"), "cannot be reached"),
    (gr.Error("something new"), "cannot be reached"),
    (RuntimeError("ZeroGPU API /schedule error: 500"), "cannot be reached"),
    (httpx.ConnectError("refused"), "cannot be reached"),
    (Empty(), "cannot be reached"),
]


def raising(error):
    """A lender who raises `error` at the second value of a stream, and at any single call."""

    def decorator(*, duration):
        def decorate(task):
            def stream(*arguments):
                yield next(task(*arguments))
                raise error

            def once(*arguments):
                raise error

            return stream if task.__name__ == "numbers" else once

        return decorate

    return lent(decorator)


def numbers(count):
    yield from range(count)


def double(number):
    return 2 * number


@pytest.mark.parametrize(("error", "said"), CASES)
def test_each_error_is_said_in_plain_words(error, said):
    stream = raising(error)(duration=lambda count: 5)(numbers)(3)
    assert next(stream) == 0
    with pytest.raises(Refused, match=said) as refused:
        next(stream)
    assert "\n" not in str(refused.value)
    with pytest.raises(Refused, match=said):
        raising(error)(duration=lambda number: 5)(double)(3)


def test_what_is_no_error_of_the_lender_passes_through():
    with pytest.raises(ExperimentError):
        list(raising(ExperimentError("a", "b"))(duration=lambda count: 5)(numbers)(3))


def test_values_and_closing_pass_through():
    closed, asked = [], []

    def decorator(*, duration):
        def decorate(task):
            asked.append(duration(7))
            return task

        return decorate

    def endless(first):
        try:
            while True:
                yield first
        finally:
            closed.append(first)

    stream = lent(decorator)(duration=lambda first: first)(endless)(7)
    assert next(stream) == 7
    stream.close()
    assert closed == asked == [7]
    assert lent(decorator)(duration=lambda number: 1)(double)(4) == 8
