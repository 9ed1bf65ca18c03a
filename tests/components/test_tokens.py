import dataclasses

import pytest

from components.tokens import panel as tokens
from components.tokens.characters import characters_touched
from components.tokens.merges import merges_value, tokenizers_value, word_at
from components.visible import visible_bytes
from engine.answers.merges import Merge, Merges, Word
from engine.answers.tokenizers import Counted, Tokenizers
from tests.components.handmade import ANSWER, PROMPT, make_rendered, make_step, make_trace, make_view
from tests.components.reading import read, station


def texts(row):
    return [cell if isinstance(cell, str) else cell[0] for cell in row]


def test_every_position_has_one_row_with_its_own_numbers(trace):
    rows = read(tokens.render(make_view(trace))[0])["rows"]
    rendered = trace.rendered(0)
    assert len(rows) == 21 + len(ANSWER)
    for position, row in enumerate(rows[:21]):
        cells = texts(row)
        assert cells[:3] == [str(position), str(rendered.token_ids[position]), rendered.pieces[position]]
        assert bytes.fromhex(cells[3]) == rendered.token_bytes[position]
    for step, row in zip(trace.steps(0), rows[21:], strict=True):
        assert texts(row)[:2] == [str(step.position), str(step.token_id)]


def test_half_characters_are_bytes_and_name_their_character(trace):
    rows = read(tokens.render(make_view(trace))[0])["rows"]
    assert rows[10][4] == ["⟨E2⟩⟨91⟩", "accent", None, "part of ①"]
    assert rows[11][4] == ["⟨A0⟩", "accent", None, "part of ①"]
    assert rows[23][4] == ["⟨F0⟩⟨9F⟩", "accent", None, "part of 😀"]
    assert "�" not in str(rows)


def test_hostile_text_stays_text(trace):
    rows = read(tokens.render(make_view(trace))[0])["rows"]
    assert rows[12][4] == "<script>alert(1)</script>"
    assert rows[13][4] == "${x}"
    assert rows[22][4] == "⟨U+200F⟩"


def test_spans_and_colours(trace):
    rows = read(tokens.render(make_view(trace))[0])["rows"]
    assert rows[0][5][:2] == ["system, scaffold", "scaffold"]
    assert rows[3][5][:2] == ["system", "system"]
    assert rows[14][5][:2] == ["user", "user"]
    assert rows[21][5][:2] == ["assistant, sampled", "assistant"]
    assert rows[26][5][:2] == ["assistant, sampled", "scaffold"]


def test_a_forced_token_is_said_to_be_a_choice(trace):
    step = dataclasses.replace(trace.steps(0)[0], forced=True)
    assert tokens.select(trace.rendered(0), [step], 0, 22)[-1].span == "assistant, your choice"


@pytest.mark.parametrize(("position", "row"), [(None, 26), (5, 5), (24, 24)])
def test_the_selected_position_is_the_selected_row(trace, position, row):
    value = read(tokens.render(make_view(trace, position=position))[0])
    assert value["selected"] == row
    assert value["keys"][row] == {"position": row}
    assert value["caption"] == "27 tokens. Tokens that hold only a part of a character: 4."


def test_the_newest_prompt_position_is_shown_before_the_first_step():
    trace = make_trace(())
    assert read(tokens.render(make_view(trace))[0])["selected"] is None
    assert len(read(tokens.render(make_view(trace))[0])["rows"]) == 21


def long_view(position):
    parts = [*PROMPT[:4], ("user", 0, "content", (8,) * 1000), *PROMPT[5:]]
    trace = make_trace((), stop=False)
    return make_view(dataclasses.replace(trace, events=(make_rendered(parts),)), position=position)


@pytest.mark.parametrize(("position", "first"), [(0, 0), (500, 400), (1015, 816)])
def test_a_long_context_is_shown_around_the_selected_position(position, first):
    value = read(tokens.render(long_view(position))[0])
    assert len(value["rows"]) == tokens.MAX_ROWS
    assert value["keys"] == [{"position": p} for p in range(first, first + tokens.MAX_ROWS)]
    assert value["keys"][value["selected"]] == {"position": position}
    assert f"positions {first}–{first + 199}" in value["caption"]
    assert "816 are left out" in value["caption"]


def test_the_sum_by_span_is_the_whole(trace):
    value = read(tokens.render(make_view(trace))[3])
    assert value["caption"] == "3 + 2 + 2 + 3 + 5 + 2 + 4 + 6 = 27"
    assert [texts(row)[1] for row in value["rows"]] == ["3", "2", "2", "3", "5", "2", "4", "6"]
    assert texts(value["rows"][-1])[2] == "27"
    assert sum(row[1][2] for row in value["rows"]) == pytest.approx(1, abs=1e-3)


def test_a_long_chat_joins_its_middle_and_still_adds_up():
    parts = [part for _ in range(20) for part in PROMPT]
    value = read(tokens.spans_value(tokens.stretches(make_rendered(parts), [])))
    assert len(value["rows"]) == tokens.MAX_STRETCHES
    assert sum(int(texts(row)[1]) for row in value["rows"]) == 20 * 21
    assert texts(value["rows"][-1])[2] == str(20 * 21)
    assert sum("stretches more" in texts(row)[0] for row in value["rows"]) == 1


def test_the_answer_with_and_without_marks(trace):
    value = read(tokens.render(make_view(trace))[6])
    assert value["rows"] == [
        ["with special marks", "Hi⟨U+200F⟩😀!<|im_end|>"],
        ["without them", "Hi⟨U+200F⟩😀!"],
    ]
    assert "1 of 6" in value["caption"]
    assert read(tokens.render(make_view(make_trace(())))[6])["rows"] == []


def test_station_counts_tokens_and_halves(trace):
    assert station(tokens, make_view(trace)) == ("27", "4 half")
    whole = dataclasses.replace(trace, events=(make_rendered([("user", 0, "content", (8, 9))]),))
    assert station(tokens, make_view(whole)) == ("2", "all whole")
    empty = make_view(dataclasses.replace(trace, events=()))
    assert station(tokens, empty)[0] == "–"
    assert tokens.unavailable(empty)


@pytest.mark.parametrize("first", [11, 12, 24])
def test_a_character_across_the_border_of_the_rows_is_still_named(trace, first):
    everything = tokens.select(trace.rendered(0), trace.steps(0), 0, 27)
    assert tokens.select(trace.rendered(0), trace.steps(0), first, 27) == everything[first:]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("text", ["①角 a", "👍🏽é", "தமிழ்", "a", ""])
def test_touched_characters_are_those_whose_bytes_overlap(text, size):
    data = text.encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    spans, start = [], 0
    for char in text:
        spans.append((start, start + len(char.encode()), char))
        start = spans[-1][1]
    expected = [
        visible_bytes("".join(c for a, b, c in spans if a < i + size and b > i).encode())
        for i in range(0, len(data), size)
    ]
    assert characters_touched(pieces) == expected


def test_bytes_that_never_become_a_character_stay_bytes():
    assert characters_touched([b"\xe2", b"\x91"]) == ["⟨E2⟩⟨91⟩", "⟨E2⟩⟨91⟩"]
    assert characters_touched([b"\x91", b"a"]) == ["⟨91⟩", "a"]
    assert characters_touched([b"", b"a"]) == ["", "a"]


def test_a_token_of_two_half_characters_is_split():
    rendered = make_rendered()
    step = make_step(0, 21, 18, make_trace().facts)
    assert tokens.select(rendered, [step], 0, 22)[-1].split


def test_the_recorded_run_has_every_token_and_the_golden_ids(paris):
    rows = read(tokens.render(make_view(paris))[0])["rows"]
    assert len(rows) == 37 + len(paris.steps(0))
    assert ["42", "7042", "ĠParis", "20 50 61 72 69 73", "␣Paris"] == texts(rows[42])[:5]
    assert read(tokens.render(make_view(paris))[3])["caption"].startswith("3 + 16 + 2 + 3 + 7 + 2 + 4 + ")
    second = read(tokens.render(make_view(paris, turn=1))[0])["rows"]
    assert "part of 👍" in {row[4][3] for row in second if isinstance(row[4], list)}
    assert "�" not in str(rows + second)


# One word, merge by merge, and other tokenizers.


def merged(view, position=10):
    return read(merges_value(view, position))


def with_probe(trace, found, **cursor):
    asked = []

    def probe(name, **arguments):
        asked.append((name, arguments))
        return found

    return dataclasses.replace(make_view(trace, **cursor), probe=probe), asked


WORD = Word(
    "Ġhug",
    ("Ġ", "h", "u", "g"),
    (Merge(4, "u", "g", ("Ġ", "h", "ug")), Merge(9, "h", "ug", ("Ġ", "hug"))),
    ("Ġ", "hug"),
)


def test_merges_stand_in_order_with_their_ranks_and_the_pieces_after_each(trace):
    view, asked = with_probe(trace, Merges(" hug", "bpe", (WORD,), (7, 8), ("Ġ", "hug"), True), query=" hug")
    value = merged(view)
    assert asked == [("merges", {"text": " hug"})]
    assert texts(value["rows"][0]) == ["0", "", "smallest pieces", "Ġ · h · u · g"]
    assert value["rows"][1:] == [["1", "4", "u + g", "Ġ · h · ug"], ["2", "9", "h + ug", "Ġ · hug"]]
    assert "Checked: the tokenizer's own encoding has the same 2 tokens, ids 7, 8." in value["caption"]


def test_pieces_that_are_not_the_tokenizers_own_are_said_to_differ(trace):
    view, _ = with_probe(trace, Merges(" hug", "bpe", (WORD,), (1,), ("<hug>",), False), query=" hug")
    assert "1 token, id 1, and it is another one" in merged(view)["caption"]


def test_a_vocabulary_without_merges_says_what_it_does_instead(trace):
    unigram = Merges("abc", "unigram", (Word("abc", (), (), ("ab", "c"), (-1.0, -3.0)),), (1, 4), ("ab", "c"), True)
    value = merged(with_probe(trace, unigram, query="abc")[0])
    assert [texts(row)[1:] for row in value["rows"]] == [
        ["-1.00", "log-probability of the piece", "ab"],
        ["-3.00", "log-probability of the piece", "c"],
    ]
    assert "highest sum of log-probabilities" in value["caption"]
    pieces = Merges("undo", "wordpiece", (Word("undo", (), (), ("un", "##do")),), (1, 2), ("un", "##do"), True)
    assert texts(merged(with_probe(trace, pieces, query="undo")[0])["rows"][0])[2:] == ["not by merges", "un · ##do"]
    whole = Merges("the", "bpe", (Word("the", ("the",), (), ("the",), taken_whole=True),), (3,), ("the",), True)
    assert "has it whole" in texts(merged(with_probe(trace, whole, query="the")[0])["rows"][0])[2]


def test_without_a_text_the_selected_tokens_word_is_cut(trace):
    rendered, steps = trace.rendered(0), trace.steps(0)
    # ①<script>… is one word of four tokens with no space between; " user" begins the next.
    assert word_at(rendered, steps, 10) == word_at(rendered, steps, 13) == "①<script>alert(1)</script>${x}"
    assert word_at(rendered, steps, 14) == " user"
    assert word_at(rendered, steps, 0) == ""
    view, asked = with_probe(trace, Merges(" user", "bpe", (), (), (), True))
    merged(view, 14)
    assert asked == [("merges", {"text": " user"})]
    assert "control mark" in merged(view, 0)["caption"]
    assert "none is loaded" in merged(make_view(trace), 14)["caption"]


def test_the_same_text_under_other_tokenizers():
    rows = (
        Counted("tiny", "Tiny", 24, 6),
        Counted("other", "Other", 50, 3),
        Counted("far", "Far", 99, None, "not_here"),
    )
    value = read(tokenizers_value(Tokenizers(" strawberry 你好", 14, 18, rows)))
    assert [texts(row) for row in value["rows"]] == [
        ["Tiny", "24", "6", "0.429", "3.00", "1.00×"],
        ["Other", "50", "3", "0.214", "6.00", "0.50×"],
        ["Far", "99", "not on this machine", "–", "–", "–"],
    ]
    assert "14 characters, 18 bytes" in value["caption"]
    assert "Nothing is downloaded" in read(tokenizers_value(None))["caption"]
    empty = read(tokenizers_value(Tokenizers("", 0, 0, (Counted("tiny", "Tiny", 24, 0),))))
    assert texts(empty["rows"][0]) == ["Tiny", "24", "0", "–", "–", "–"]
