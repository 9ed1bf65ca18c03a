"""What cannot be seen is made visible, and nothing is lost on the way."""

from hypothesis import given
from hypothesis import strategies as st

from components.units import bytes_text, probability_text, seconds_text, share_text
from components.visible import visible, visible_bytes


def test_white_space_has_marks() -> None:
    assert visible("a\n\n  b\t") == "a⏎⏎␣␣b⇥"


def test_invisible_and_direction_changing_characters_are_named() -> None:
    assert visible("\u202eabc\u200d\x00") == "⟨U+202E⟩abc⟨U+200D⟩⟨U+0000⟩"


def test_half_characters_are_bytes() -> None:
    circled_one = "①".encode()
    assert visible_bytes(circled_one[:2]) == "⟨E2⟩⟨91⟩"
    assert visible_bytes(circled_one[2:]) == "⟨A0⟩"
    assert visible_bytes(b" " + "角".encode()[:2]) == "␣⟨E8⟩⟨A7⟩"


@given(st.binary(max_size=40))
def test_no_replacement_character_appears_on_its_own(data: bytes) -> None:
    assert ("\ufffd" in visible_bytes(data)) == ("\ufffd".encode() in data)


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), max_size=40))
def test_visible_text_is_left_alone(text: str) -> None:
    assert visible(text) == text
    assert visible_bytes(text.encode()) == text


def test_units() -> None:
    assert [bytes_text(n) for n in (0, 1023, 1536, 46_080 * 37)] == ["0 B", "1023 B", "1.50 KiB", "1.63 MiB"]
    assert [seconds_text(s) for s in (0.0531, 1.234)] == ["53 ms", "1.23 s"]
    assert [seconds_text(s) for s in (0, 0.0002, 0.9994, 0.9996)] == ["0 ms", "<1 ms", "999 ms", "1.00 s"]
    assert [probability_text(p) for p in (0.9994, 0.9996, 0.9999999)] == [".999", ">.999", ">.999"]
    assert [share_text(p) for p in (0, 0.0004, 0.99944, 0.9996, 1)] == ["0.0%", "<0.1%", "99.9%", ">99.9%", "100.0%"]
    assert [probability_text(p) for p in (0.9621, 1.0, 0.0, 1e-9, 0.0006)] == [".962", "1.00", ".000", "<.001", ".001"]
