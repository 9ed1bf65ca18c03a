"""The lessons that come with the program: they are whole, say the same in both languages, and what they claim holds."""

import re
from pathlib import Path

import pytest

import lesson as tool
from components.copy import LANGUAGES
from components.lesson_player.library import read, read_library
from components.lesson_player.places import PANEL_OF, parts
from components.lesson_player.places import buttons as buttons_of
from components.panels import PANELS
from engine.catalog import load_catalog
from engine.claims_on_record import find_on_record
from engine.lesson_text import fill, places
from engine.lessons import FOLDER, TRACES, lesson_files
from engine.record import record_from_bytes

ROOT = Path(__file__).parents[1]
MODELS = load_catalog().loadable_ids
LESSONS = [read(file, MODELS) for file in lesson_files(FOLDER)]
IDS = sorted({lesson.id for lesson in LESSONS})
RECORDS = sorted({lesson.record for lesson in LESSONS})
#: Bytes of all records together.
MOST = 4_000_000


def name(lesson):
    return lesson.name


def said_apart(lesson):
    """All of a lesson that is the same in every language."""
    data = lesson.written.model_dump(exclude={"title", "summary"})
    for note in data["notes"]:
        note |= {text: sorted(set(places(note[text] or ""))) for text in ("question", "answer")}
        note.pop("look")
    return data


def test_there_are_lessons_for_a_course():
    assert len(IDS) >= 12


@pytest.mark.parametrize("lesson_id", IDS)
def test_a_lesson_is_there_in_every_language_and_differs_in_words_only(lesson_id):
    each = [lesson for lesson in LESSONS if lesson.id == lesson_id]
    assert {lesson.language for lesson in each} == set(LANGUAGES)
    assert all(said_apart(lesson) == said_apart(each[0]) for lesson in each)


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.language == "zh"], ids=name)
def test_chinese_texts_are_chinese(lesson):
    texts = [
        lesson.written.title,
        lesson.written.summary,
        *(text for note in lesson.written.notes for text in note.texts),
    ]
    assert [text for text in texts if not re.search(r"[\u4e00-\u9fff]", text)] == []


def test_every_record_belongs_to_a_lesson_and_together_they_are_small():
    assert set(TRACES.glob("*.record.json.gz")) == set(RECORDS)
    assert sum(record.stat().st_size for record in RECORDS) < MOST


@pytest.mark.parametrize("lesson", LESSONS, ids=name)
def test_claims_hold_on_the_record_and_fill_the_texts(lesson):
    record = record_from_bytes(lesson.record.read_bytes())
    assert record.trace.experiment == lesson.written.experiment
    found = find_on_record(lesson.claims, record)
    assert {claim: (one.value, one.error) for claim, one in found.items() if not one.holds} == {}
    values = {claim: one.value for claim, one in found.items()}
    for note in lesson.written.notes:
        assert all(fill(text, values) for text in note.texts)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.name.partition(".")[0])
def test_claims_hold_on_a_run_made_anew(embedded, monkeypatch, capsys, record):
    monkeypatch.setattr("engine.commands.run.load", lambda *asked: embedded)
    file = next(lesson.file for lesson in LESSONS if lesson.record == record)
    assert tool.main(["check", "--live", str(file)]) == 0, capsys.readouterr().out


# --- a teacher's own ---

DOCUMENT = (ROOT / "docs" / "lessons.md").read_text("utf-8")
EXAMPLE = re.search(r"<!-- tested -->\n```yaml\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def example(tmp_path):
    file = tmp_path / "my-lessons" / "en" / "first-token.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(EXAMPLE[1], "utf-8")
    return file


def test_the_lesson_of_the_document_is_recorded_checked_and_listed(example, embedded, monkeypatch, capsys):
    monkeypatch.setattr("engine.commands.run.load", lambda *asked: embedded)
    assert tool.main(["record", str(example)]) == 0
    assert "first-token.record.json.gz" in capsys.readouterr().out
    assert tool.main(["check", "--texts", str(example)]) == 0
    assert "You wrote one line; the model read 37 tokens." in capsys.readouterr().out
    listed = read_library(MODELS, example.parent.parent).shelf.listed("zh")
    assert [lesson.id for lesson in listed if lesson.file == example] == ["first-token"]
    assert len(listed) == len(IDS) + 1


def test_a_claim_that_does_not_hold_is_told_and_fails_the_command(example, embedded, monkeypatch, capsys):
    monkeypatch.setattr("engine.commands.run.load", lambda *asked: embedded)
    example.write_text(EXAMPLE[1].replace("is: 37", "is: 38"), "utf-8")
    assert tool.main(["record", str(example)]) == 1
    assert "note 1 FAIL tokens is 38: 37" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("cursor: {step: 5}", "cursor: {step: 50}", "note 2: cursor.step: there is no step 50; turn 0 has 8 tokens"),
        ("max_new_tokens: 8", "max_new_tokens: 7", "experiment: its record is of another; make it anew: "),
    ],
)
def test_a_record_that_is_older_than_its_lesson_is_refused(example, embedded, monkeypatch, capsys, was, now, said):
    monkeypatch.setattr("engine.commands.run.load", lambda *asked: embedded)
    assert tool.main(["record", str(example)]) == 0
    assert was in EXAMPLE[1]
    example.write_text(EXAMPLE[1].replace(was, now), "utf-8")
    assert tool.main(["check", str(example)]) == 2
    assert said in capsys.readouterr().err


def test_a_mistake_is_told_as_the_document_says(example, capsys):
    example.write_text(EXAMPLE[1].replace("cursor: {step: 5}", "cursor: {stepp: 5}"), "utf-8")
    assert tool.main(["record", str(example)]) == 2
    said = capsys.readouterr().err.strip()
    assert said == "error: en/first-token.yaml: note 2: cursor.stepp: unknown field"
    assert said in DOCUMENT


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (
            "cursor: {step: 5}",
            "cursor: {step: 50}",
            "note 2: cursor.step: there is no step 50; turn 0 has 8 tokens",
        ),
        ("cursor: {step: 5}", "press: [norms]", "note 2: press: sampling has no button 'norms' that a note may press"),
        (
            "panel: logits\n    part: sampling-bars",
            "panel: tools",
            "note 2: panel: tools has nothing to show here: ",
        ),
        (
            "panel: logits\n    part: sampling-bars",
            "panel: attention\n    part: attention-matrix",
            "note 2: part: attention-matrix is not there just now; what is: attention-notes, ",
        ),
    ],
)
def test_a_note_that_shows_nothing_is_refused(example, embedded, monkeypatch, capsys, was, now, said):
    monkeypatch.setattr("engine.commands.run.load", lambda *asked: embedded)
    example.write_text(EXAMPLE[1].replace(was, now), "utf-8")
    assert tool.main(["record", str(example)]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_whose_lesson_has_no_run_is_refused(example):
    with pytest.raises(
        ValueError, match="en/first-token.yaml: its run is missing; make it with: python lesson.py record"
    ):
        read_library(MODELS, example.parent.parent)
    with pytest.raises(ValueError, match="no lesson is there"):
        read_library(MODELS, example.parent)


def test_the_document_names_every_part_of_every_panel():
    told = dict(re.findall(r"^\| `([a-z_]+)` \| ((?:`[a-z-]+`(?:, )?)+) \|$", DOCUMENT, re.MULTILINE))
    listed = {panel: re.findall(r"`([a-z-]+)`", parts) for panel, parts in told.items()}
    assert listed == {panel.STATION: parts()[panel.STATION] for panel in PANELS if panel.STATION != "compare"}


def test_the_document_names_every_panel_button_and_field():
    told = set(re.findall(r"`([a-z_]+)`", DOCUMENT))
    buttons = {button for panel in PANEL_OF.values() for button in buttons_of(panel)}
    assert told >= {*PANEL_OF, *buttons, "turn", "step", "position", "made", "layer", "head", "figure", "operation"} - {
        "compare"
    }
