"""Lessons from the command line: `python lesson.py record FILE …` makes the run that a lesson plays, `check` proves it.

A note points at what a panel shows, so the recorder plays the notes: it lets each panel draw itself and keeps what
the panel asked of the model. Beside `app.py` this is the only module that knows both the engine and the panels.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.desk import Desk
from components.lesson_player.library import read
from components.lesson_player.rehearsal import rehearse
from components.lesson_player.scene import cursor, tokens_made
from engine.catalog import Catalog, ModelError, load_catalog
from engine.claims import Finding, find
from engine.claims_on_record import find_on_record
from engine.commands.reading import BAD_INPUT, FAILED_RUN, OneLineParser, one_line
from engine.experiment import ExperimentError
from engine.lesson_text import fill
from engine.lessons import FOLDER, Lesson, LessonError, lesson_files
from engine.playback import Playback
from engine.record import Record, record_from_bytes, record_to_bytes
from engine.refusals import Refused
from engine.settings import Settings

if TYPE_CHECKING:
    from engine.noted import NotedRun


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0, 1 where a claim does not hold, 2 for a lesson that cannot be read."""
    parser = OneLineParser(prog="python lesson.py", description="Make and check the recorded runs of lessons.")
    commands = parser.add_subparsers(required=True, metavar="record | check")
    for name, run, said in (
        ("record", record, "run a lesson's experiment, play its notes, and write the record that it plays from"),
        ("check", check, "check lessons, and what they claim, on their records"),
    ):
        command = commands.add_parser(name, help=said)
        command.add_argument("files", nargs="*" if name == "check" else "+", type=Path, metavar="FILE")
        if name == "check":
            command.add_argument("--live", action="store_true", help="check on a run made anew, not on the record")
        command.add_argument("--texts", action="store_true", help="also print the texts with the numbers put in")
        Settings.add_flags(command, "device", "dtype")
        command.set_defaults(run=run)
    flags = parser.parse_args(arguments)
    catalog = load_catalog()
    try:
        return int(flags.run(flags, catalog))
    except (ExperimentError, LessonError, ModelError, OSError, Refused) as error:
        print(one_line(f"error: {error}"), file=sys.stderr)
        return BAD_INPUT


def record(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Run each lesson's experiment, play its notes in every language, and write what they need into its record."""
    failed = False
    for lessons in _by_record(flags.files, catalog):
        run = rehearsed(lessons, flags, catalog)
        for lesson in lessons:
            failed |= not tell(lesson, find(lesson.claims, run.whole, run.ask), texts=flags.texts)
        file = lessons[0].record
        file.parent.mkdir(parents=True, exist_ok=True)
        data = record_to_bytes(run.record)
        file.write_bytes(data)
        steps = sum(len(run.whole.steps(turn)) for turn in range(run.whole.turns))
        print(f"{file.name}: {len(data):,} bytes, {steps} steps, {len(run.record.answers)} answers of probes")
    return FAILED_RUN if failed else 0


def check(flags: argparse.Namespace, catalog: Catalog) -> int:
    """Check each lesson, all of the program's where none is named, on its record or on a run made anew."""
    failed = False
    for lessons in _by_record(flags.files or lesson_files(FOLDER), catalog):
        run = rehearsed(lessons, flags, catalog) if flags.live else None
        recorded = None if run else record_from_bytes(lessons[0].record.read_bytes())
        for lesson in lessons:
            if run:
                found = find(lesson.claims, run.whole, run.ask)
            else:
                assert recorded is not None
                check_places(lesson, recorded)
                found = find_on_record(lesson.claims, recorded)
            failed |= not tell(lesson, found, texts=flags.texts)
    return FAILED_RUN if failed else 0


def check_places(lesson: Lesson, recorded: Record) -> None:
    """Raise `LessonError` where the record is of another experiment, or a note looks at what it does not have."""
    if recorded.trace.experiment != lesson.written.experiment:
        raise LessonError(
            f"{lesson.name}: experiment: its record is of another; make it anew: python lesson.py record {lesson.file}"
        )
    for number, note in enumerate(lesson.written.notes, 1):
        try:
            cursor(Playback(recorded).trace_at(tokens_made(recorded.trace, note.cursor)), note.cursor)
        except LessonError as error:
            raise LessonError(f"{lesson.name}: note {number}: {error}") from None


def rehearsed(lessons: Sequence[Lesson], flags: argparse.Namespace, catalog: Catalog) -> "NotedRun":
    """The lessons' experiment run to its end, with the answers that the notes of all of them need."""
    # torch takes seconds to import: a bad lesson is told before.
    from engine.commands.run import load
    from engine.noted import NotedRun

    experiment = lessons[0].written.experiment
    run = NotedRun(load(experiment.model, flags, catalog), experiment, catalog)
    ready: Future[Any] = Future()
    ready.set_result(run)
    desk = Desk(ready, experiment)
    for lesson in lessons:
        for number, note in enumerate(lesson.written.notes, 1):
            try:
                run.stand(tokens_made(run.whole, note.cursor))
                rehearse(desk, run.trace(""), note)
            except LessonError as error:
                raise LessonError(f"{lesson.name}: note {number}: {error}") from None
    return run


def tell(lesson: Lesson, found: Mapping[str, Finding], *, texts: bool) -> bool:
    """Print what each claim found, and with `texts` what a student reads; True where all is well."""
    print(f"{lesson.name}: {lesson.written.title}")
    well = True
    values = {name: finding.value for name, finding in found.items() if finding.error is None}
    for number, note in enumerate(lesson.written.notes, 1):
        for name, claim in note.claims.items():
            finding = found[name]
            well &= finding.holds
            said = finding.error or f"{str(finding.value)[:160]!s}"
            print(one_line(f"  note {number}  {'ok  ' if finding.holds else 'FAIL'} {name} {claim.says()}: {said}"))
        for text in note.texts:
            try:
                written = fill(text, values)
            except ValueError as error:
                well = False
                print(one_line(f"  note {number}  FAIL {error}"))
            else:
                if texts:
                    print(one_line(f"  note {number}  {written}"))
    return well


def _by_record(files: Iterable[Path], catalog: Catalog) -> list[list[Lesson]]:
    """The lessons of these files, and those of the same folder that play from the same records, by record.

    Raises `LessonError` where lessons with one record differ in their experiment.
    """
    groups: dict[Path, list[Lesson]] = {}
    for file in files:
        lesson = read(file, catalog.loadable_ids)
        if lesson.record in groups:
            continue
        beside = [read(other, catalog.loadable_ids) for other in lesson_files(file.resolve().parent.parent)]
        groups[lesson.record] = group = [other for other in beside if other.record == lesson.record]
        for other in group:
            if other.written.experiment != group[0].written.experiment:
                raise LessonError(
                    f"{other.name}: experiment: is not that of {group[0].name}, which has the same record"
                )
    return list(groups.values())


if __name__ == "__main__":
    sys.exit(main())
