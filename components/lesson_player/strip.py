"""What the lesson strip shows: the list of lessons, or the note that is played."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from components.copy import words
from components.lesson_player.library import Reading
from components.lesson_player.places import station_of
from components.lesson_player.scene import cursor, tokens_made
from components.visit import Visit
from components.widgets import host
from engine.experiment import ExperimentError
from engine.lesson_text import fill
from engine.lessons import Lesson, LessonError

STRIP = "lesson"


def build() -> gr.HTML:
    """The strip; its event `select` carries what is wanted as {"do": …}, with the lesson's id for "open",
    whether the list is to be open for "list", and whether the answer is to be shown for "reveal".
    """
    return host.widget("lesson", STRIP, words("lesson").text("label"))


def value(visit: Visit, *, alone: bool = False) -> dict[str, Any]:
    """The strip's value: the list or the note, and neither where no lesson is open.

    `alone` says that no model is there to run it on.
    """
    reading = visit.reading
    lesson = reading.lesson(visit.language) if reading else None
    listing = reading is not None and reading.listing
    return {
        "list": _list(reading, visit.language) if reading and listing else None,
        "note": _note(visit, reading, lesson, alone) if reading and lesson and not listing else None,
    }


def _list(reading: Reading, language: str) -> dict[str, Any]:
    say = words("lesson")
    lessons = reading.library.shelf.listed(language)
    cards = [
        [
            lesson.id,
            lesson.written.title,
            lesson.written.summary,
            say.text("meta", minutes=lesson.written.minutes, level=say.text(f"level_{lesson.written.level}")),
            lesson.id == reading.lesson_id,
        ]
        for lesson in lessons
    ]
    return {
        "label": say.text("list_label"),
        "close": say.text("list_close"),
        "empty": "" if lessons else say.text("list_empty"),
        "cards": host.items(cards),
    }


def _note(visit: Visit, reading: Reading, lesson: Lesson, alone: bool) -> dict[str, Any]:
    say, notes = words("lesson"), lesson.written.notes
    number = min(reading.note, len(notes) - 1)
    note, last = notes[number], number == len(notes) - 1
    values = _values(reading, lesson)
    shown = bool(note.answer) and reading.revealed
    return {
        "key": f"{lesson.language}/{lesson.id}/{number}",
        "title": lesson.written.title,
        "where": say.text("where", number=number + 1, count=len(notes)),
        "part": note.part or "",
        "point": say.text("point"),
        "look": _paragraphs(note.look, values),
        "question_label": say.text("question"),
        "question": _paragraphs(note.question or "", values),
        "answer_label": say.text("answer"),
        "answer": _paragraphs(note.answer or "", values) if shown else [],
        "reveal": say.text("hide" if shown else "reveal") if note.answer else "",
        "back": say.text("back"),
        "first": number == 0,
        "next": say.text("again" if last else "next"),
        "list": say.text("list"),
        "close": say.text("close"),
        "away": say.text("away") if away(visit, reading, lesson) else "",
        "live": say.text("live") if visit.playing is not None and not alone else "",
        "live_hint": say.text("live_hint"),
        "said": "" if visit.playing is not None else say.text("live_now"),
    }


def away(visit: Visit, reading: Reading, lesson: Lesson) -> bool:
    """True where something else is in sight than the note points at, or where that cannot be shown."""
    note = lesson.written.notes[min(reading.note, len(lesson.written.notes) - 1)]
    playing = visit.playing
    if playing is None or visit.station != station_of(note.panel):
        return True
    try:
        record = reading.library.record(lesson)
        if playing.playback.record is not record or playing.made != tokens_made(record.trace, note.cursor):
            return True
        wanted = cursor(playing.trace, note.cursor)
    except (LessonError, ExperimentError, OSError):  # of another language, whose file is not in order
        return True
    return any(
        getattr(visit.cursor, name) != getattr(wanted, name)
        for name in ("position", "layer", "head", "figure", "operation", "query", "formula")
    )


def _values(reading: Reading, lesson: Lesson) -> Mapping[str, Any]:
    try:
        return reading.library.values(lesson)
    except (ExperimentError, OSError):  # of another language, whose record is not there
        return {}


def _paragraphs(text: str, found: Any) -> list[str]:
    try:
        written = fill(text, found)
    except ValueError:  # the record is older than the text: its places stay as they are written
        written = text
    return host.items(written.split("\n\n")) if written else []
