"""What the commands share: reading their input, refusing it in one line, telling how a run goes on."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from engine.dialogue import told
from engine.experiment import ExperimentError
from engine.trace import Event, Prefilled, Stepped, Stopped, ToolCalled

BAD_INPUT = 2
FAILED_RUN = 1
INTERRUPTED = 130


class OneLineParser(argparse.ArgumentParser):
    """A parser that refuses in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        print(one_line(f"error: {message}"), file=sys.stderr)
        raise SystemExit(BAD_INPUT)


def read(source: str, limit: int, what: str) -> bytes:
    """The bytes of a file, `-` for standard input. Raises OSError, and `ExperimentError` beyond `limit` bytes."""
    if source == "-":
        if sys.stdin is None:
            raise ExperimentError("", "standard input is closed")
        data = sys.stdin.buffer.read(limit + 1)
    else:
        with Path(source).open("rb") as file:
            data = file.read(limit + 1)
    if len(data) > limit:
        raise ExperimentError("", f"{what} has at most {limit:,} bytes, this has more")
    return data


@contextmanager
def promised(out: Path | None) -> Iterator[None]:
    """A file that cannot be written is told before the work and not after it. Raises OSError.

    Where nothing comes of the work, a file that was not there before goes again.
    """
    if out is None:
        yield
        return
    made = not out.exists() and not out.is_symlink()
    with out.open("ab"):
        pass
    try:
        yield
    except BaseException:
        if made:
            out.unlink(missing_ok=True)
        raise


def report(event: Event) -> None:
    """Tell what just happened, on standard error."""
    match event:
        case Prefilled():
            line = f"turn {event.turn}: {event.last - event.first + 1} positions prefilled in {event.seconds:.2f} s"
        case Stepped():
            line = f"{event.position}: {event.token_id} {event.piece!r} in {1000 * event.seconds:.0f} ms"
        case ToolCalled():
            line = f"turn {event.turn} called {event.name}: {told(event)}"
        case Stopped():
            line = f"turn {event.turn} stopped: {event.reason} {json.dumps(event.evidence, default=str)}"
        case _:
            return
    print(one_line(line), file=sys.stderr)


def write_out(value: Any, out: Path | None = None) -> None:
    """Write strict JSON to a file, or to standard output. Raises OSError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"
    if out is None:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    else:
        out.write_text(text, encoding="utf-8")


def one_line(text: str) -> str:
    """One printable line: no line break or escape sequence of a file reaches the terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(text.split()))
