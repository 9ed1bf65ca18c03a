from pathlib import Path

import pytest
import yaml

from components.lesson_player.places import parts
from engine.lessons import FOLDER, TRACES, LessonError, Shelf, lesson_files, read_lesson

MODELS, PANELS = ("smollm2-135m-instruct",), {"lens": ("lens-rows", "lens-map"), "prompt": ("prompt-strip",)}
PARIS = (FOLDER / "en" / "paris.yaml").read_text("utf-8")


def written(**changes):
    note = {"panel": "lens", "look": "Look at {a}.", "claims": {"a": {"of": "trace", "at": "facts.layers", "is": 30}}}
    lesson = {
        "title": "T", "summary": "S.", "minutes": 1, "level": "beginner", "order": 1, "record": "r",
        "experiment": {"model": MODELS[0], "prompt": "x"}, "notes": [note],
    }  # fmt: skip
    return lesson | changes


def note(**changes):
    return {"notes": [{"panel": "lens", "look": "Look."} | changes]}


def read(folder: Path, content, name="en/mine.yaml"):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content), "utf-8")
    return read_lesson(file, panels=PANELS, models=MODELS, tools=("calculator",))


def test_a_lesson_is_read_with_the_defaults_of_an_experiment(tmp_path):
    lesson = read(tmp_path, written())
    assert (lesson.id, lesson.language, lesson.name) == ("mine", "en", "en/mine.yaml")
    assert lesson.written.experiment.version == 1
    assert lesson.record == tmp_path / "traces" / "r.record.json.gz"
    assert list(lesson.claims) == ["a"]


def test_the_program_s_own_records_are_in_its_assets():
    lesson = read_lesson(FOLDER / "en" / "paris.yaml", panels=parts(), models=MODELS, tools=())
    assert lesson.record == TRACES / "paris.record.json.gz"


CLAIM = {"of": "trace", "at": "facts.layers", "is": 30}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (written(titel="x"), "en/mine.yaml: titel: unknown field"),
        (written(title=""), "title: String should have at least 1 character, got ''"),
        (written(level="hard"), "level: Input should be 'beginner' or 'deeper', got 'hard'"),
        (written(notes=[]), "notes: Tuple should have at least 1 item"),
        (written(**note(panel="lense")), "note 1: panel: unknown panel 'lense'; known: lens, prompt"),
        (written(**note(part="map")), "note 1: part: lens has no part 'map'; it has: lens-rows, lens-map"),
        (written(**note(part="prompt-strip")), "note 1: part: lens has no part 'prompt-strip'"),
        (written(**note(part="Lens map")), "note 1: part: String should match pattern"),
        (written(**note(cursor={"stepp": 1})), "note 1: cursor.stepp: unknown field"),
        (written(**note(cursor={"step": 1, "position": 2})), "note 1: cursor: give one of step and position, not both"),
        (written(**note(cursor={"layer": -1})), "note 1: cursor.layer: Input should be greater than or equal to 0"),
        (written(**note(look="see {b}")), "note 1: look: {b} is no claim of this note or one before"),
        (written(**note(look="see {b.c}")), "note 1: look: '{b.c}' is no place"),
        (written(**note(question="Why?")), "note 1: a question and its answer come together"),
        (written(**note(claims={"a": {"of": "trace", "at": "x"}})), "note 1: claims.a: say what it must be"),
        (written(**note(claims={"a": CLAIM | {"at": "x y"}})), "note 1: claims.a: 'x y' cannot be read"),
        (
            written(notes=[note(claims={"a": CLAIM})["notes"][0], note(claims={"a": CLAIM})["notes"][0]]),
            "note 2: claims.a: another claim has this name already",
        ),
        (
            written(**note(claims={"a": {"of": "claims", "at": "b - c", "is": 1}})),
            "note 1: claims.a: 'b' is no claim that stands before it",
        ),
        (written(experiment={"model": "gpt9", "prompt": "x"}), "experiment.model: unknown model 'gpt9'"),
        (written(experiment={"model": MODELS[0]}), "experiment: give exactly one of 'messages' and 'prompt'"),
        (
            written(experiment={"model": MODELS[0], "prompt": "x", "sampling": {"top_p": 2}}),
            "experiment.sampling.top_p: Input should be less than or equal to 1, got 2",
        ),
        (PARIS.replace("minutes: 7", "minutes: 7\nminutes: 8"), "the field 'minutes' is there twice"),
        ("a: [", "this is no YAML"),
        ("- a", "fields like 'title: …' are wanted"),
        ("x: " + "y" * 200_001, "a lesson has at most 200,000 bytes"),
    ],
)
def test_a_broken_lesson_is_refused_in_one_line_that_names_the_place(tmp_path, content, said):
    with pytest.raises(LessonError) as caught:
        read(tmp_path, content)
    assert said in str(caught.value)
    assert str(caught.value).startswith("en/mine.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["en/My Lesson.yaml", "english/mine.yaml", "en/..yaml"])
def test_a_file_must_be_called_like_a_lesson(tmp_path, name):
    with pytest.raises(LessonError, match="a lesson is a file like en/my-lesson.yaml"):
        read(tmp_path, written(), name)


def test_the_shelf_gives_each_lesson_once_in_the_language_that_there_is(tmp_path):
    both = [read(tmp_path, written(order=2), f"{language}/both.yaml") for language in ("en", "zh")]
    only = read(tmp_path, written(order=1), "zh/only.yaml")
    shelf = Shelf([*both, only])
    assert [lesson.name for lesson in shelf.listed("en")] == ["zh/only.yaml", "en/both.yaml"]
    assert [lesson.name for lesson in shelf.listed("zh")] == ["zh/only.yaml", "zh/both.yaml"]
    assert shelf.find("both", "fr") is both[0]
    assert shelf.find("none", "en") is None
    with pytest.raises(LessonError, match="are one lesson twice"):
        Shelf([only, only])


def test_the_files_of_a_folder_are_found(tmp_path):
    read(tmp_path, written(), "zh/b.yaml")
    read(tmp_path, written(), "en/a.yaml")
    (tmp_path / "traces").mkdir()
    assert [file.name for file in lesson_files(tmp_path)] == ["a.yaml", "b.yaml"]
