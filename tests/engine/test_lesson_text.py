import pytest

from engine.lesson_text import fill, paragraphs, places

FOUND = {"rank": 4316, "p": 0.9621, "said": " Paris", "share": 6.62}


def test_places_take_values_and_number_formats():
    text = 'rank {rank:,}, p {p:.1%}, "{said}", {share:+.2f}, {rank} of {{all}}'
    assert fill(text, FOUND) == 'rank 4,316, p 96.2%, " Paris", +6.62, 4316 of {all}'
    assert list(places(text)) == ["rank", "p", "said", "share", "rank"]


@pytest.mark.parametrize(
    "text", ["{}", "{p.__class__}", "{p[0]}", "{p!r}", "{p:>1000000}", "{p:{rank}}", "{", "a}", "{P}"]
)
def test_nothing_else_is_a_place(text):
    with pytest.raises(ValueError, match="is no place"):
        fill(text, FOUND)
    with pytest.raises(ValueError, match="is no place"):
        list(places(text))


def test_a_value_that_does_not_take_its_format_is_told():
    with pytest.raises(ValueError, match=r"\{said:.1%\} cannot be written: said is ' Paris'"):
        fill("{said:.1%}", FOUND)
    with pytest.raises(ValueError, match=r"\{missing\} has no value"):
        fill("{missing}", FOUND)


def test_lines_become_paragraphs_and_chinese_lines_join_without_a_space():
    assert paragraphs("one\n two\n\n\n three ") == "one two\n\nthree"
    assert paragraphs("第一行，\n第二行 Paris\n 第三行") == "第一行，第二行 Paris 第三行"
