"""Lessons: files in which a teacher points at a run. Read, validated, and refused with the place that is wrong.

A lesson is an experiment and notes; each note sets a panel and a cursor, says what to look at, asks a question and
answers it, and claims what the run must hold. `docs/lessons.md` says how to write one.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, Field, StringConstraints, ValidationError, field_validator, model_validator

from engine.claims import Claim
from engine.experiment import Experiment, parse_experiment
from engine.lesson_text import paragraphs, places
from engine.values import ExperimentError, Value, short

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "lessons"
TRACES = FOLDER.parent / "traces"

MAX_BYTES = 200_000

_NAME = r"[a-z][a-z0-9_-]{0,40}"


def _with_places(text: str) -> str:
    tuple(places(text))
    return text


Name = Annotated[str, StringConstraints(pattern=rf"^{_NAME}$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=300), AfterValidator(paragraphs)]
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=3_000), AfterValidator(paragraphs), AfterValidator(_with_places)
]
Index = Annotated[int, Field(ge=0, lt=100_000)]


class LessonError(ValueError):
    """A lesson that cannot be read. The message names the file, the note and the field."""


class Place(Value):
    """What a note selects. `step` stands for the token that was chosen there; without it and without `position` the
    newest token is looked at. `made` shows the run as it was when so many tokens of the turn were made.
    """

    turn: Index = 0
    step: Index | None = None
    position: Index | None = None
    made: Index | None = None
    layer: Index = 0
    head: Index = 0
    figure: Name | None = None
    operation: Name | None = None
    query: str = Field(default="", max_length=200)
    formula: str = Field(default="", max_length=200)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.step is not None and self.position is not None:
            raise ValueError("give one of step and position, not both")
        return self


class Note(Value):
    """One stop of a lesson. `part` is the part of the panel that it speaks of, where that is not the first; `press`
    names buttons of the panel that are pressed before one looks.
    """

    panel: Name
    part: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,40}$")] | None = None
    cursor: Place = Place()
    press: tuple[Name, ...] = Field(default=(), max_length=4)
    look: Text
    question: Text | None = None
    answer: Text | None = None
    claims: Mapping[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,40}$")], Claim] = {}

    @model_validator(mode="after")
    def _a_question_has_an_answer(self) -> Self:
        if (self.question is None) != (self.answer is None):
            raise ValueError("a question and its answer come together")
        return self

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(text for text in (self.look, self.question, self.answer) if text)


class Written(Value):
    """What stands in the file."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    summary: Line
    minutes: Annotated[int, Field(ge=1, le=120)]
    level: Literal["beginner", "deeper"]
    order: Annotated[int, Field(ge=0, le=100_000)]
    record: Name
    experiment: Experiment
    notes: Annotated[tuple[Note, ...], Field(min_length=1, max_length=40)]

    @field_validator("experiment", mode="before")
    @classmethod
    def _version_1_where_none_is_said(cls, value: Any) -> Any:
        return {"version": 1} | value if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        known: set[str] = set()
        for number, note in enumerate(self.notes, 1):
            for name, claim in note.claims.items():
                if name in known:
                    raise ValueError(f"note {number}: claims.{name}: another claim has this name already")
                for part in claim.parts:
                    if part not in known:
                        raise ValueError(f"note {number}: claims.{name}: {part!r} is no claim that stands before it")
                known.add(name)
            for field in ("look", "question", "answer"):
                for name in places(getattr(note, field) or ""):
                    if name not in known:
                        raise ValueError(f"note {number}: {field}: {{{name}}} is no claim of this note or one before")
        return self


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson of a file: its id is the file's name, its language that of the folder."""

    id: str
    language: str
    file: Path
    written: Written

    @property
    def name(self) -> str:
        """Its language and file, as messages name it."""
        return f"{self.language}/{self.file.name}"

    @property
    def claims(self) -> dict[str, Claim]:
        """All claims by name, in the order in which they stand."""
        return {name: claim for note in self.written.notes for name, claim in note.claims.items()}

    @property
    def record(self) -> Path:
        """The file of its recorded run: in assets/traces, or in the folder `traces` beside a teacher's own lessons."""
        folder = self.file.resolve().parent.parent
        return (TRACES if folder == FOLDER else folder / "traces") / f"{self.written.record}.record.json.gz"


def read_lesson(
    file: Path, *, panels: Mapping[str, Sequence[str]], models: Collection[str], tools: Collection[str]
) -> Lesson:
    """Read and validate one file; `panels` are the parts of each panel, by its name. Raises `LessonError`."""
    where = f"{file.parent.name}/{file.name}"
    if not re.fullmatch(_NAME, file.stem) or not re.fullmatch(r"[a-z]{2}", file.parent.name):
        raise LessonError(f"{where}: a lesson is a file like en/my-lesson.yaml, in small letters")
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise LessonError(f"{where}: a lesson has at most {MAX_BYTES:,} bytes, this has {len(data):,}")
        decoded = yaml.load(data.decode("utf-8"), Loader=_OnceOnly)
    except (OSError, UnicodeDecodeError) as error:
        raise LessonError(f"{where}: cannot be read: {error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise LessonError(f"{where}: this is no YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(decoded, dict):
        raise LessonError(f"{where}: fields like 'title: …' are wanted")
    try:
        lesson = Lesson(file.stem, file.parent.name, file, Written.model_validate(decoded))
        parse_experiment(lesson.written.experiment.model_dump(), models=models, tools=tools)
    except ValidationError as error:
        raise LessonError(f"{where}: {_said(error)}") from None
    except ExperimentError as error:
        raise LessonError(f"{where}: experiment.{error}") from None
    for number, note in enumerate(lesson.written.notes, 1):
        if note.panel not in panels:
            raise LessonError(
                f"{where}: note {number}: panel: unknown panel {note.panel!r}; known: {', '.join(panels)}"
            )
        if note.part is not None and note.part not in panels[note.panel]:
            raise LessonError(
                f"{where}: note {number}: part: {note.panel} has no part {note.part!r}; "
                f"it has: {', '.join(panels[note.panel])}"
            )
    return lesson


def lesson_files(folder: Path) -> list[Path]:
    """The files of a folder of lessons, `<language>/<id>.yaml`."""
    return sorted(folder.glob("*/*.yaml"))


class Shelf:
    """All lessons there are, in every language. Raises `LessonError` where two have one id and language."""

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._lessons: dict[tuple[str, str], Lesson] = {}
        for lesson in lessons:
            key = (lesson.id, lesson.language)
            if key in self._lessons:
                raise LessonError(f"{lesson.file} and {self._lessons[key].file} are one lesson twice")
            self._lessons[key] = lesson

    def find(self, lesson_id: str, language: str) -> Lesson | None:
        """The lesson in that language, else in English, else in any; None where there is none of that id."""
        of_any = (lesson for (own, _), lesson in self._lessons.items() if own == lesson_id)
        return self._lessons.get((lesson_id, language)) or self._lessons.get((lesson_id, "en")) or next(of_any, None)

    def listed(self, language: str) -> list[Lesson]:
        """Each lesson once, in that language where there is one, in the order that the files ask for."""
        ids = dict.fromkeys(own for own, _ in self._lessons)
        found = [lesson for own in ids if (lesson := self.find(own, language))]
        return sorted(found, key=lambda lesson: (lesson.written.order, lesson.id))


class _OnceOnly(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """YAML's plain values; a field that stands there twice is refused, where YAML itself would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the field {twice!r} is there twice", node.start_mark)
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


def _said(error: ValidationError) -> str:
    """The first error in one line: the note, the field, and what is wanted there."""
    detail = error.errors(include_url=False)[0]
    parts = list(detail["loc"])
    note = ""
    if parts[:1] == ["notes"] and len(parts) > 1:
        note, parts = f"note {int(parts[1]) + 1}: ", parts[2:]
    # Union branches appear in the location as type expressions; they are no part of the file.
    field = ".".join(str(part) for part in parts if isinstance(part, int) or re.fullmatch(r"[\w-]+", part))
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        message = "unknown field"
    elif detail["type"] not in {"missing", "value_error"}:
        message += f", got {short(detail['input'])}"
    return f"{note}{field}: {message}" if field else f"{note}{message}"
