"""The lessons of a page, and their records, each read when it is first played."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from components.compose import TOOLS
from components.lesson_player.places import parts
from engine.claims_on_record import find_on_record
from engine.lessons import FOLDER, Lesson, LessonError, Shelf, lesson_files, read_lesson
from engine.record import Record, record_from_bytes

#: Records kept in memory beside those that somebody plays; one of a short run takes a few megabytes there.
RECORDS = 8

_played: WeakValueDictionary[Path, Record] = WeakValueDictionary()


@lru_cache(RECORDS)
def read_record(file: Path) -> Record:
    """The record in a file, the same object for as long as anybody has it. Raises `ExperimentError`, OSError."""
    record = _played.get(file)
    if record is None:
        record = _played[file] = record_from_bytes(file.read_bytes())
    return record


@dataclass(frozen=True, eq=False)
class Library:
    """The lessons that a page offers."""

    shelf: Shelf = field(default_factory=lambda: Shelf(()))
    _values: dict[Lesson, Mapping[str, Any]] = field(default_factory=dict)

    def record(self, lesson: Lesson) -> Record:
        """The lesson's run; the same object for as long as anybody plays it. Raises `ExperimentError`, OSError."""
        return read_record(lesson.record)

    def values(self, lesson: Lesson) -> Mapping[str, Any]:
        """What the lesson's claims found on its record, for the places in its texts."""
        if lesson not in self._values:
            findings = find_on_record(lesson.claims, self.record(lesson))
            self._values[lesson] = {name: found.value for name, found in findings.items() if found.error is None}
        return self._values[lesson]


def read(file: Path, models: Collection[str]) -> Lesson:
    """One lesson, on one of these models, of the panels and tools that this program has. Raises `LessonError`."""
    return read_lesson(file, panels=parts(), models=models, tools=TOOLS)


def read_library(models: Collection[str], folder: Path | None = None) -> Library:
    """The program's own lessons, and those of a teacher's folder. Raises `LessonError`, also where a run is missing."""
    lessons = [read(file, models) for file in lesson_files(FOLDER)]
    if folder is not None:
        own = [read(file, models) for file in lesson_files(folder)]
        if not own:
            raise LessonError(f"{folder}: no lesson is there; a lesson is a file like {folder}/en/my-lesson.yaml")
        for lesson in own:
            if not lesson.record.is_file():
                raise LessonError(
                    f"{lesson.name}: its run is missing; make it with: python lesson.py record {lesson.file}"
                )
        lessons += own
    return Library(Shelf(lessons))


@dataclass
class Reading:
    """Where a visitor is in the lessons; changed in place."""

    library: Library
    listing: bool = False  # the list of lessons is open
    lesson_id: str | None = None
    note: int = 0
    revealed: bool = False  # the answer to the note's question is shown

    def plays(self, record: Record) -> bool:
        """True where that is the run of the lesson that is played."""
        lesson = self.lesson("en")
        return lesson is not None and self.library.record(lesson) is record

    def lesson(self, language: str) -> Lesson | None:
        """The lesson that is played, in the visitor's language where there is one."""
        return self.library.shelf.find(self.lesson_id, language) if self.lesson_id is not None else None
