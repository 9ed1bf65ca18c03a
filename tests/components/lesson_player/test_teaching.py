"""A lesson played on a desk that has no model: the record alone."""

from concurrent.futures import Future

import pytest

from components.compose import form_values
from components.copy import speak
from components.desk import Desk
from components.lesson_player import strip
from components.lesson_player.library import RECORDS, Library, read, read_library, read_record
from components.lesson_player.places import PANEL_OF
from components.visit import Visit
from components.widgets import host
from engine.catalog import load_catalog
from engine.lessons import Shelf, lesson_files
from engine.link import Link, link_to_text
from engine.playback import WithoutModel

CATALOG = load_catalog()
LIBRARY = read_library(CATALOG.loadable_ids)
PARIS = LIBRARY.shelf.find("paris", "en")


@pytest.fixture
def desk() -> Desk:
    record = LIBRARY.record(PARIS)
    ready = Future()
    ready.set_result(WithoutModel(record.facts, CATALOG))
    made = Desk(ready, record.trace.experiment)
    made.library = LIBRARY
    return made


@pytest.fixture
def visit() -> Visit:
    return Visit("visitor")


NOTHING = {"list": {}, "note": {}}


def shown(visit):
    return host.read({name: part or {} for name, part in strip.value(visit).items()})


def note(visit):
    return shown(visit)["note"]


def press(desk, visit, action, **more):
    desk.teach(visit, {"do": action} | more)
    assert visit.notice == ""


def test_nothing_is_shown_until_the_list_is_opened(desk, visit):
    assert shown(visit) == NOTHING
    desk.teach(visit, {"do": "next"})
    assert shown(visit) == NOTHING
    desk.list_lessons(visit)
    cards = shown(visit)["list"]["cards"]
    assert [card[0] for card in cards] == [lesson.id for lesson in LIBRARY.shelf.listed("en")]
    assert ["paris", PARIS.written.title, PARIS.written.summary, "7 min · deeper", False] in cards
    desk.list_lessons(visit)
    assert shown(visit) == NOTHING


def test_each_note_sets_its_panel_and_cursor_on_the_record(desk, visit):
    desk.open_lesson(visit, "paris")
    for number, written in enumerate(PARIS.written.notes):
        view, panel = desk.view(visit), PANEL_OF[written.panel]
        assert note(visit)["where"] == f"note {number + 1} of {len(PARIS.written.notes)}"
        assert (view.cursor.layer, view.cursor.head) == (written.cursor.layer, written.cursor.head)
        assert panel.unavailable(view) is None
        assert any(panel.render(view))
        assert note(visit)["away"] == ""
        press(desk, visit, "next")
    assert note(visit)["where"] == "note 1 of 6"  # after the last comes the first
    assert desk.view(visit).steps == ()  # which looks at the prompt alone
    press(desk, visit, "back")
    assert note(visit)["where"] == "note 1 of 6"


def test_the_list_is_open_or_closed_as_its_button_said_however_often_that_is_pressed(desk, visit):
    desk.open_lesson(visit, "paris")
    for wanted in (True, True, False, False):
        press(desk, visit, "list", open=wanted)
        assert bool(shown(visit)["list"]) is wanted
        assert bool(note(visit)) is not wanted


def test_the_texts_hold_what_the_record_holds(desk, visit):
    desk.open_lesson(visit, "paris", 1)
    assert note(visit)["look"][0].endswith("has rank 4,316 of 49,152. At row 15, with half of the layers behind it, its rank is still 2,065.")  # fmt: skip  # noqa: E501
    assert (note(visit)["reveal"], note(visit)["answer"]) == ("Show the answer", [])
    for _ in range(2):  # pressed twice
        press(desk, visit, "reveal", show=True)
        assert note(visit)["answer"][0].startswith("From row 29 of 30.")
    for _ in range(2):
        press(desk, visit, "reveal", show=False)
        assert note(visit)["answer"] == []
    press(desk, visit, "reveal", show=True)
    press(desk, visit, "next")
    assert note(visit)["answer"] == []  # the next question is a new one


def test_a_buttons_answer_is_in_the_record(desk, visit):
    desk.open_lesson(visit, "paris", 5)
    assert visit.notice == ""
    assert "lens_map" in desk.view(visit).results


@pytest.mark.parametrize(
    "wander",
    [
        lambda desk, visit: setattr(visit, "station", "tokens"),
        lambda desk, visit: desk.select(visit, {"position": 3}),
        lambda desk, visit: desk.select(visit, {"head": 2}),
        lambda desk, visit: desk.back(visit),
        lambda desk, visit: desk.look_up(visit, " Rome"),
    ],
)
def test_who_wanders_off_is_led_back(desk, visit, wander):
    desk.open_lesson(visit, "paris", 4)
    where = desk.view(visit).cursor
    wander(desk, visit)
    assert note(visit)["away"] == "Back to this note"
    press(desk, visit, "here")
    assert note(visit)["away"] == ""
    assert (visit.station, desk.view(visit).cursor) == ("attention", where)


def test_the_visitor_s_language_decides_the_file(desk, visit):
    desk.open_lesson(visit, "paris", 1)
    english, cursor = note(visit), visit.cursor
    visit.language = "zh"
    chinese = note(visit)
    assert chinese["title"] == LIBRARY.shelf.find("paris", "zh").written.title != english["title"]
    assert (visit.cursor, chinese["away"]) == (cursor, "")


def test_closing_leaves_the_record(desk, visit):
    desk.open_lesson(visit, "paris")
    assert visit.playing is not None
    visit.refill = False
    press(desk, visit, "close")
    assert (visit.playing, visit.reading, visit.refill, shown(visit)) == (None, None, True, NOTHING)


def test_running_it_oneself_needs_a_model(desk, visit):
    desk.open_lesson(visit, "paris")
    desk.teach(visit, {"do": "live"})
    assert "no model" in visit.notice
    assert visit.playing is not None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("rome",), "There is no lesson rome here."),
        (("x" * 500,), "There is no lesson " + "x" * 60),
        (("paris", 6), "This lesson has 6 notes."),
        (("paris", -1), "This lesson has 6 notes."),
    ],
)
def test_a_lesson_that_is_not_there_is_told_and_changes_nothing(desk, visit, asked, said):
    desk.open_lesson(visit, *asked)
    assert visit.notice.startswith(said)
    assert (visit.reading, visit.playing) == (None, None)


@pytest.mark.parametrize("sent", [{}, {"do": 3}, {"do": "open"}, {"do": "open", "id": 7}, {"do": "open", "id": None}])
def test_anything_may_come_from_the_browser(desk, visit, sent):
    desk.list_lessons(visit)
    desk.teach(visit, sent)
    assert visit.reading.lesson_id is None


def test_a_record_that_cannot_be_read_is_told(desk, visit, tmp_path, monkeypatch):
    broken = tmp_path / "paris.record.json.gz"
    broken.write_bytes(b"no record")
    monkeypatch.setattr("engine.lessons.TRACES", tmp_path)
    desk.open_lesson(visit, "paris")
    assert "The recorded run of this lesson cannot be read" in visit.notice
    assert visit.reading is None


def test_a_lesson_that_is_played_stays_itself_whatever_others_play(desk, visit, tmp_path):
    desk.open_lesson(visit, "paris")
    for number in range(RECORDS + 1):
        copy = tmp_path / f"{number}.record.json.gz"
        copy.write_bytes(PARIS.record.read_bytes())
        read_record(copy)
    assert note(visit)["away"] == ""
    assert LIBRARY.record(PARIS) is visit.playing.playback.record


@pytest.mark.parametrize(
    "wrong", [("cursor: {turn: 0, position: 4}", "cursor: {turn: 0, position: 400}"), ("record: paris", "record: gone")]
)
def test_a_mistake_in_another_language_s_file_takes_the_note_only(desk, visit, tmp_path, monkeypatch, wrong):
    monkeypatch.setattr("engine.lessons.FOLDER", tmp_path)
    for language in ("en", "zh"):
        text = LIBRARY.shelf.find("paris", language).file.read_text("utf-8")
        (tmp_path / language).mkdir()
        assert wrong[0] in text
        (tmp_path / language / "paris.yaml").write_text(text.replace(*wrong) if language == "zh" else text, "utf-8")
    lessons = [read(file, CATALOG.loadable_ids) for file in lesson_files(tmp_path)]
    desk.library = Library(Shelf(lessons))
    number = next(at for at, one in enumerate(PARIS.written.notes) if one.cursor.position == 4)
    desk.open_lesson(visit, "paris", number)
    assert (visit.notice, note(visit)["away"]) == ("", "")
    visit.language = "zh"
    assert note(visit)["away"] != ""
    visit.language = "en"
    assert note(visit)["away"] == ""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_link_made_in_a_lesson_opens_its_note(desk, visit, language):
    visit.language = language
    desk.open_lesson(visit, "paris", 3)
    desk.link(visit, "", form_values(desk.view(visit).trace.experiment))
    assert (visit.notice, bool(visit.shared)) == ("", True)
    opened = desk.open("another", link=visit.shared)
    assert (opened.notice, opened.language, opened.reading.lesson_id, opened.reading.note) == ("", language, "paris", 3)
    assert (opened.station, opened.cursor) == (visit.station, visit.cursor)
    assert opened.refill
    speak("en")


def test_a_link_made_in_a_lesson_keeps_the_place_that_was_wandered_to(desk, visit):
    desk.open_lesson(visit, "paris", 3)
    position = next(step.position for step in desk.view(visit).trace.steps(0))
    desk.select(visit, {"position": position, "layer": 9, "head": 4})
    visit.station = "tokens"
    desk.link(visit, "", form_values(desk.view(visit).trace.experiment))
    opened = desk.open("another", link=visit.shared)
    assert (opened.reading.lesson_id, opened.reading.note, opened.station) == ("paris", 3, "tokens")
    assert (opened.cursor.position, opened.cursor.layer, opened.cursor.head) == (position, 9, 4)


def test_a_link_to_a_lesson_that_is_not_here_says_so(desk, visit):
    experiment = LIBRARY.record(PARIS).trace.experiment
    opened = desk.open("another", link=link_to_text(Link(experiment=experiment, lesson="gone")))
    assert "gone" in opened.notice
    assert opened.reading is None
