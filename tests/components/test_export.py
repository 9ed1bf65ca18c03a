"""A run as one HTML file: what it packs comes back, it shows what the page shows, and no text of it is markup."""

import dataclasses
import html
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import app
from components.copy import FOLDER, LANGUAGES, words, words_in
from components.export.layout import layouts, widget_ids
from components.export.of_record import heads, html_page
from components.export.pieces import SIGNS, Pieces, deflated, pack_columns, squeezed
from components.export.places import PROMPT_POSITIONS, places
from components.export.shots import ASKED, TYPED
from components.panels import PANELS
from components.transcript_strip import timeline
from components.widgets.host import items
from engine.answers.refusal import Refusal
from engine.record import Answered, Record, record_from_bytes, record_to_bytes
from engine.refusals import Refused
from engine.said import said
from engine.trace import Event, Rendered
from tests.components.exported import HOSTILE, Exported, hostile_record, read, unpack, view_of
from tests.components.handmade import make_rendered, make_step, make_trace, make_view
from tests.components.pages import page_over
from tests.components.replays import replaying

#: Languages whose copy is whole.
SPOKEN = [language for language in LANGUAGES if (FOLDER / language / "page.md").exists()]


@pytest.fixture(scope="module")
def record() -> Record:
    return Record(make_trace())


@pytest.mark.parametrize("size", [0, 1, 12, 13, 14, 1000])
def test_bytes_come_back_from_signs_that_are_no_markup(size: int) -> None:
    value = ["\x00<&>" + "x" * size, "</script>", {"$x": [1.5, None, True]}, "\ud83d"]
    packed = squeezed(value)
    assert read(packed) == value
    assert set(packed.text.encode()) <= set(SIGNS)
    assert len(SIGNS) == 91
    assert not set(SIGNS) & set(b"<&\\ \n")
    assert len(deflated(bytes(1000)).text) % 2 == 0


def test_texts_that_many_values_share_stand_once() -> None:
    hover = '"hovertext":[' + ",".join(f'"row {row}"' for row in range(40)) + "],"
    value = {"a": f'{{"y":[1],{hover}}}', "b": [f'{{"y":[2],{hover}}}', "short"]}
    pieces = Pieces()
    packed = pieces.pack(value)
    assert unpack(json.loads(json.dumps(packed)), pieces.all) == value
    assert sum(piece.count("hovertext") for piece in pieces.all) <= 2
    blocks = items(["x" * 30 + str(row) for row in range(40)])
    columns = pack_columns({"one": [blocks, blocks, None]})
    assert columns["widgets"]["one"]["at"] == [0, 0, 1]
    assert unpack(columns["widgets"]["one"]["values"][0], columns["pieces"]) == blocks
    with pytest.raises(ValueError, match="marks a text"):
        pieces.pack({"$": []})


def test_the_layout_is_that_of_the_page() -> None:
    found = layouts(PANELS)
    known = {name for layout in found.values() for name in widget_ids(layout["parts"])}
    for panel in PANELS:
        assert len(widget_ids(found[panel.STATION]["parts"])) == len(panel.build())
    asks = {name for panel in PANELS for name in panel.CONTROLS.asks}
    assert set(ASKED) <= asks
    assert {widget for mine in ASKED.values() for widget in mine} | TYPED <= known
    assert found["prompt"]["parts"][-1]["fold"]
    assert not any("*" in text or "`" in text for layout in found.values() for text in layout["intro"])


def test_a_page_is_made_of_a_record_that_holds_refusals() -> None:
    """Of a window that has moved on, say: the map and the matrix were asked for, and there are none."""
    refused = Refusal(said("window_has_moved"))
    asked = ({"position": 3, "layer": 0, "head": 0}, {"turn": 0, "layer": 0, "head": 0}, {"first": 0, "count": 4})
    probes = ("attention", "attention_matrix", "lens_map")
    answers = [Answered(name, arguments, refused) for name, arguments in zip(probes, asked, strict=True)]
    record = Record(make_trace(), tuple(answers))
    assert heads(record) == [(0, 0)]
    assert Exported(html_page(record, "en")).data["panels"]


def test_every_widget_shows_what_its_panel_renders(record: Record) -> None:
    exported = Exported(html_page(record, "en"))
    shown = {panel["station"] for panel in exported.data["panels"]}
    assert {"prompt", "tokens", "tensors", "sampling", "stopping", "kv_cache", "run_table"} == shown
    prompt = len(make_rendered().token_ids)
    for position in (0, prompt, prompt + 5):
        view = dataclasses.replace(view_of(record, position=position), probe=None)
        for panel in (one for one in PANELS if one.STATION in shown):
            ids = widget_ids(layouts([panel])[panel.STATION]["parts"])
            for name, value in zip(ids, panel.render(view), strict=True):
                if name in exported.data["widgets"]:
                    assert exported.value(name, 0, position) == json.loads(json.dumps(value)), name
    strip = exported.value("timeline", 0, prompt + 5)
    assert strip["selected"] == prompt + 5
    chips = [json.loads(line) for block in strip["chips"] for line in block.split("\n")]
    assert [chip[1] for chip in chips] == [chip.text for chip in timeline(make_view())[0].chips]
    stations = [json.loads(line)[0] for block in exported.value("rail", 0, 0)["stations"] for line in block.split("\n")]
    assert set(stations) == set(exported.data["owner"])


def test_what_waits_for_a_button_or_a_text_is_left_out(record: Record) -> None:
    exported = Exported(html_page(record, "en"))
    gone = {"prompt-compare", "tokens-tokenizers", "kv-uncached", "run-parity", "sampling-lookup", "tensors-padding"}
    assert not gone & set(exported.data["widgets"])
    assert not any(f'"{name}-heading"' in json.dumps(exported.data["panels"]) for name in gone)


def test_all_turns_are_there_each_as_it_was_when_it_was_the_newest() -> None:
    trace = make_trace()
    rendered = make_rendered(turn=1)
    later: list[Event] = [
        rendered,
        *(make_step(step, len(rendered.token_ids), 15, trace.facts, turn=1) for step in range(2)),
    ]
    exported = Exported(html_page(Record(dataclasses.replace(trace, events=(*trace.events, *later))), "en"))
    assert [turn for turn, *_ in exported.data["places"]].count(1) == len(rendered.token_ids) + 2
    assert [step for turn, _, step in exported.data["places"] if turn == 1][-2:] == [0, 1]
    assert len(exported.data["turns"]) == 2
    first = exported.value("timeline", 0, len(rendered.token_ids))
    assert sum(block.count("\n") + 1 for block in first["chips"]) == len(rendered.token_ids) + 6
    assert "turns" in {panel["station"] for panel in exported.data["panels"]}


def test_of_a_long_prompt_the_newest_positions_can_be_chosen() -> None:
    trace = make_trace()
    rendered = trace.events[0]
    assert isinstance(rendered, Rendered)
    long = make_rendered([("user", 0, "content", [8] * 300)])
    found = places(make_view(dataclasses.replace(trace, events=(long, *trace.events[1:]))))
    assert [place.position for place in found if place.step is None] == list(range(300 - PROMPT_POSITIONS, 300))


def test_the_same_record_gives_the_same_bytes(record: Record) -> None:
    assert html_page(record, "en") == html_page(Record(make_trace()), "en")


@pytest.mark.parametrize("language", SPOKEN)
def test_the_page_speaks_the_language_that_is_asked_for(record: Record, language: str) -> None:
    text = html_page(record, language)
    say = words_in(language, "record_page")
    assert f'<html lang="{language}">' in text
    assert html.escape(say.text("title", model="Tiny")) in text
    assert Exported(text).data["words"]["play"] == say.text("play")
    assert Exported(text).data["names"]["timeline"] == words_in(language, "page").text("timeline")


def test_both_languages_say_the_same_things() -> None:
    ours, theirs = words_in("en", "record_page"), words_in("zh", "record_page")
    assert set(ours.sections) == set(theirs.sections)
    for key, text in ours.sections.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", theirs.sections[key])), key


def test_no_text_of_a_run_is_markup() -> None:
    title = "</title><script>window.ran=1</script>"
    text = html_page(hostile_record(title), "en")
    for piece in (*HOSTILE, title):
        assert piece not in text
    assert html.escape(title) in text
    assert text.count("<script") == 3
    assert text.count("</script>") == 3
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in html.unescape(policy[1]).split("; "))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"('sha256-[\w+/]{43}=' ?){2}", rules["script-src"])
    assert set(rules) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}


def test_heads_are_those_kept_at_most_places(record: Record) -> None:
    kept = [(1, 1), (0, 2), (1, 1), (1, 0), (0, 2), (1, 1), (0, 3)]
    seen = [SimpleNamespace(layer=layer, head=head) for layer, head in kept]
    made = Record(record.trace, tuple(Answered("attention", {}, one) for one in seen))
    assert heads(made) == [(1, 1), (0, 2), (1, 0)]
    assert heads(record) == [(0, 0)]


def test_an_empty_run_is_refused() -> None:
    with pytest.raises(Refused, match="no run"):
        html_page(Record(dataclasses.replace(make_trace(), events=())), "en")


def test_the_command_writes_the_page(record: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "run.record.json.gz", tmp_path / "run.html"
    file.write_bytes(record_to_bytes(record))
    assert app.main(["--export", str(file), "--html", str(page)]) == 0
    assert page.read_bytes().decode() == html_page(record, "en")
    file.write_bytes(b"no record")
    assert app.main(["--export", str(file), "--html", str(page)]) == 2
    assert "no record" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        app.main(["--export", str(file)])
    assert "belong together" in capsys.readouterr().err


def test_a_run_too_long_for_a_page_is_refused_before_anything_is_drawn(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(places(make_view(record.trace)))
    monkeypatch.setattr("components.export.page.MOST_PLACES", count - 1)
    monkeypatch.setattr("components.export.page.shoot", None)
    with pytest.raises(Refused, match=f"at most {count - 1} tokens.* has {count}"):
        html_page(record, "en")


def test_a_record_of_which_no_page_can_be_made_is_told(record: Record) -> None:
    desk, visit = replaying(Record(dataclasses.replace(record.trace, events=())))
    page = page_over(desk)
    pressed = (page.header.page_button.button._id, "click")
    (make,) = [one.fn for one in page.blocks.fns.values() if pressed in one.targets]
    *_, (sent, _), _ = make(visit, "")
    assert (sent, visit.notice) == ("", words("record").text("nothing"))


def test_what_was_asked_about_a_turn_is_shown_there_and_nowhere_else() -> None:
    shipped = Path(__file__).parents[2] / "assets" / "traces" / "turn-two.record.json.gz"
    record = record_from_bytes(shipped.read_bytes())
    (turn,) = (one.result.turn for one in record.answers if one.probe == "cold_turn")
    exported = Exported(html_page(record, "en"))
    for at, position, _ in exported.data["places"]:
        cold = exported.value("turns-cold", at, position)
        assert cold["rows"] if at == turn else cold is None
        assert exported.value("turns-time", at, position)["rows"]
