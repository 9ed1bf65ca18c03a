"""What a person does in a lesson: open the list, play a note, go on and back, see the answer, run it live, leave."""

from typing import Any

from components.copy import words
from components.desk_part import DeskPart
from components.in_words import in_words
from components.lesson_player.library import Library, Reading
from components.lesson_player.places import station_of
from components.lesson_player.scene import cursor, tokens_made
from components.telling import told
from components.visit import Visit
from engine.experiment import ExperimentError
from engine.lessons import Lesson
from engine.playback import Playback
from engine.refusals import Refused


class Teaching(DeskPart):
    """The part of the desk that plays lessons; how a record is shown is the desk's own."""

    #: The lessons that are offered: none, until the program gives some.
    library: Library = Library()

    @told
    def open_lesson(self, visit: Visit, lesson_id: str, note: int = 0) -> None:
        """Play a lesson, from the note of that number (from 0)."""
        lesson = self.library.shelf.find(lesson_id, visit.language)
        if lesson is None:
            raise Refused(words("lesson").text("unknown", name=lesson_id[:60]))
        count = len(lesson.written.notes)
        if not 0 <= note < count:
            raise Refused(words("lesson").text("no_note", count=count))
        self._show(visit, lesson, note)

    def list_lessons(self, visit: Visit) -> None:
        """Open or close the list of lessons."""
        if visit.reading is None:
            visit.reading = Reading(self.library)
        visit.reading.listing = not visit.reading.listing

    @told
    def teach(self, visit: Visit, wanted: dict[str, Any]) -> None:
        """What was pressed in the lesson strip. It comes from the browser, so it may be anything."""
        action, reading = wanted.get("do"), visit.reading
        if reading is None:
            return
        if action == "open" and isinstance(wanted.get("id"), str):
            self.open_lesson(visit, wanted["id"])
        elif action == "list":
            reading.listing = wanted.get("open") is True
        lesson = reading.lesson(visit.language)
        if lesson is None:
            return
        last = len(lesson.written.notes) - 1
        if action == "next":
            self._show(visit, lesson, 0 if reading.note >= last else reading.note + 1)
        elif action == "back":
            self._show(visit, lesson, max(0, min(reading.note, last) - 1))
        elif action == "here":
            self._show(visit, lesson, min(reading.note, last))
        elif action == "reveal":
            reading.revealed = wanted.get("show") is True
        elif action == "live":
            self.run_live(visit)
        elif action == "close":
            self._leave(visit)

    def _show(self, visit: Visit, lesson: Lesson, number: int) -> None:
        """Set panel and cursor on the record, as the note says, and press its buttons."""
        note = lesson.written.notes[number]
        try:
            record = self.library.record(lesson)
            made = tokens_made(record.trace, note.cursor)
            selected = cursor(Playback(record).trace_at(made), note.cursor)
        except (OSError, ExperimentError, ValueError) as error:
            reason = in_words(error) if isinstance(error, ExperimentError) else str(error)
            raise Refused(words("lesson").text("no_record", reason=reason[:200])) from error
        if visit.running:
            self.stop(visit)
        reading = visit.reading = visit.reading or Reading(self.library)
        if (reading.lesson_id, reading.note) != (lesson.id, number):
            reading.revealed = False
        reading.lesson_id, reading.note, reading.listing = lesson.id, number, False
        if visit.playing is not None and visit.playing.playback.record is record:
            visit.playing.made = made
            self._forget(visit)
        else:
            self.play(visit, record, made=made)
        visit.cursor, visit.station = selected, station_of(note.panel)
        for probe in note.press:
            self.ask(visit, probe)

    def _leave(self, visit: Visit) -> None:
        """Close the lesson and its record."""
        visit.reading = None
        if visit.playing is not None:
            self.close_record(visit)
