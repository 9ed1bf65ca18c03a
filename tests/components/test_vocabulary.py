import dataclasses

import numpy as np
import pytest

from components.tokens.vocabulary import mark_uses, marks_value, role_names, same_words, vocabulary_value
from engine.facts import SpecialMark
from tests.components.handmade import make_facts, make_rendered
from tests.components.reading import read


def texts(row):
    return [cell if isinstance(cell, str) else cell[0] for cell in row]


@pytest.mark.parametrize(("rows", "said"), [(24, "4 rows belong to no token"), (20, "one for each id"), (19, "fewer")])
def test_the_three_numbers_say_what_they_count(rows, said):
    value = read(vocabulary_value(make_facts(vocab_rows=rows)))
    assert [row[0] for row in value["rows"]] == ["17", "20", str(rows)]
    assert said in value["rows"][2][1]


def test_marks_say_what_they_do_here_and_in_the_tokenizer(trace):
    rows = [texts(row) for row in read(marks_value(trace.facts, trace.rendered(0), trace.steps(0)))["rows"]]
    by_name = {row[0]: row for row in rows}
    assert by_name["<|im_start|>"][3].startswith("opens a message")
    assert by_name["<|im_start|>"][4] == "3×"
    assert by_name["<|im_end|>"][3].startswith("closes a message; drawing it ends the answer")
    assert by_name["<|im_end|>"][4] == "3×"  # two in the prompt, one sampled
    assert by_name["<|endoftext|>"][4] == "0×"


def test_role_names_are_ordinary_words_that_follow_a_mark(trace):
    assert role_names(trace.rendered(0)) == [
        ((3,), "system", (1,)),
        ((4,), "user", (8,)),
        ((5, 6), "assistant", (18,)),
    ]


def test_the_same_word_in_content_is_told_apart(trace):
    assert same_words(trace.rendered(0), trace.steps(0)) == [((14,), " user", (14,))]
    rows = [texts(row) for row in read(marks_value(trace.facts, trace.rendered(0), trace.steps(0)))["rows"]]
    scaffold = next(row for row in rows if row[0] == "user")
    content = next(row for row in rows if row[0] == "␣user")
    assert scaffold[2] == content[2] == "ordinary"
    assert scaffold[3] != content[3]
    assert next(row for row in rows if row[0] == "assistant")[1] == "5 + 6"


def test_the_uses_of_a_mark_are_seen_not_assumed():
    rendered = make_rendered([("user", 0, "content", (8, 2, 9))])
    assert mark_uses(rendered) == {2: ()}  # typed in content: it opens and closes nothing
    assert mark_uses(make_rendered()) == {1: ("opens",), 2: ("closes",)}


def test_marks_that_are_neither_here_nor_named_are_counted_only(trace):
    more = tuple(SpecialMark(f"<|extra_{i}|>", 100 + i, ("control",)) for i in range(30))
    facts = make_facts(special_marks=(*make_facts().special_marks, *more))
    value = read(marks_value(facts, trace.rendered(0), ()))
    assert not any("extra" in texts(row)[0] for row in value["rows"])
    assert "30 more marks" in value["caption"]
    used = dataclasses.replace(trace.rendered(0), token_ids=np.where(trace.rendered(0).token_ids == 8, 100, 1))
    assert any("extra_0" in texts(row)[0] for row in read(marks_value(facts, used, ()))["rows"])
