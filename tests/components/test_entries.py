"""Stop strings and banned words, one a line: whatever they are made of, they come out of the field as they went in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.entries import entries_of, text_of

#: Texts in which backslashes, the letters after them and every kind of line end are frequent.
PIECES = st.sampled_from(["\\", "n", "t", "d", " ", "u000d", "u2028", *"\n\t\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"])
ENTRIES = st.lists(st.lists(PIECES | st.characters(), min_size=1, max_size=6).map("".join), max_size=4)


@settings(deadline=None)
@given(ENTRIES)
def test_what_is_written_is_read_and_a_browser_changes_nothing_of_it(entries: list[str]) -> None:
    written = text_of(entries)
    assert entries_of(written) == entries
    assert written.splitlines() == written.split("\n")[: len(entries)]  # no other line end, of which one could be lost


@pytest.mark.parametrize(
    ("entry", "written"),
    [
        ("\n\n", r"\n\n"),
        ("a\tb", r"a\tb"),
        ("\r\n", r"\u000d\n"),
        ("a\u2028", r"a\u2028"),
        (r"a\nb", r"a\\nb"),
        ("\\\n", r"\\\n"),
        (r"C:\dir", r"C:\dir"),
        (r"\right", r"\right"),
        (r"\\", r"\\"),
        (" x ", " x "),
        ("\\", "\\"),
        (r"\u000d", r"\\u000d"),
    ],
)
def test_an_entry_as_it_stands_in_the_field(entry: str, written: str) -> None:
    assert text_of([entry]) == written
    assert entries_of(written) == [entry]


def test_lines_that_a_person_types() -> None:
    assert entries_of("END\r\n\\n\\n\n\n") == ["END", "\n\n"]
    assert entries_of("\n \n") == [" "]
    assert entries_of(None) == []
    assert text_of([]) == ""


@settings(deadline=None)
@given(st.lists(st.sampled_from([r"\n", r"\t", r"\d", r"\r", r"\u0041", "n", "t", " ", "é", "\n"])).map("".join))
def test_what_was_ever_typed_means_the_same(typed: str) -> None:
    """A line break and a tab are all there was; only a doubled backslash before them is new."""
    assert entries_of(typed) == [line.replace(r"\n", "\n").replace(r"\t", "\t") for line in typed.split("\n") if line]
