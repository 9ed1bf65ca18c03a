"""Other ways for a conversation, from the page's intents to the trace: branches, edited messages, grids."""

import pytest

from components.compare.sides import sides_value
from components.compose import form_values
from components.desk import Desk
from components.grid_cells import MAX_CELLS, MAX_TOKENS, overrides
from components.page import Page
from components.visit import Visit
from components.widgets import host
from engine.refusals import Refused
from tests.components.pages import page_over
from tests.components.replays import saved
from tests.components.test_desk import desk, form, ids, run, trace, visit

__all__ = ["desk", "visit"]  # fixtures


def force_another(desk: Desk, visit: Visit, step: int) -> int:
    taken = trace(desk, visit).steps(0)[step]
    other = next(int(token) for token in taken.candidate_ids if token != taken.token_id)
    desk.select(visit, {"position": taken.position})
    desk.select(visit, {"token_id": other})
    return other


def grid(desk: Desk, visit: Visit, temperatures: str = "0, 1.5", seeds: str = "1, 2") -> None:
    for _ in desk.grid(visit, temperatures, seeds, form(desk)):
        pass


def test_another_candidate_keeps_the_run_as_a_branch_to_go_back_to(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    first = ids(desk, visit)
    other = force_another(desk, visit, 2)
    run(desk, visit)
    assert ids(desk, visit)[:3] == [*first[:2], other]
    (branch,) = desk.view(visit).branches
    assert [step.token_id for step in branch.trace.steps(0)] == first
    desk.select(visit, {"branch": branch.id})
    assert visit.cursor.branch == branch.id
    desk.ask(visit, "take_branch")
    assert ids(desk, visit) == first
    assert visit.notice == ""
    assert [one.trace.steps(0)[2].token_id for one in desk.view(visit).branches] == [other]


def test_the_dashes_between_two_runs_are_filled_in(desk: Desk, visit: Visit) -> None:
    run(desk, visit, min_new_tokens=6)
    force_another(desk, visit, 1)
    run(desk, visit, min_new_tokens=6)
    visit.station = "compare"
    (branch,) = desk.view(visit).branches

    def rows() -> list[list[str]]:
        read = host.read(sides_value(desk.view(visit), branch))["rows"]
        return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in read]

    assert any("–" in (row[3], row[6]) for row in rows())
    desk.ask(visit, "chances")
    assert visit.notice == ""
    assert not any("–" in (row[3], row[6]) for row in rows())


def test_there_may_be_no_branch_to_go_back_to_or_to_choose(desk: Desk, visit: Visit) -> None:
    for name in ("take_branch", "chances"):
        desk.ask(visit, name)
        assert "no branch" in visit.notice
    for key in ({"branch": 7}, {"branch": True}, {"branch": "1"}):
        desk.select(visit, key)
        assert visit.cursor.branch is None


def test_new_settings_keep_what_was_made_and_a_new_chat_forgets_it(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    run(desk, visit, temperature=2.0, seed=4)
    assert len(desk.view(visit).branches) == 1
    desk.new(visit, "", form(desk))
    assert desk.view(visit).branches == ()


def test_an_edited_message_leaves_out_what_came_after_it(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    run(desk, visit, "and then")
    desk.select(visit, {"position": 5})  # in the first message
    desk.edit(visit)
    assert (visit.editing, visit.returned) == (0, "the cat sat")
    desk.save_edit(visit, "the dog", form(desk))
    now = trace(desk, visit)
    assert [message.content for message in now.experiment.messages or ()] == ["the dog"]
    assert now.experiment.follow_ups == ()
    assert now.steps(0) == ()
    assert visit.editing is None
    assert desk.view(visit).branches[-1].trace.turns == 2


def test_the_newest_message_is_edited_where_none_is_selected_and_enter_saves_it(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    answer = trace(desk, visit).answer(0)
    run(desk, visit, "and then")
    desk.edit(visit)
    assert visit.returned == "and then"
    run(desk, visit, "or else")
    now = trace(desk, visit)
    assert [message.content for message in now.experiment.messages or ()] == ["the cat sat", answer, "or else"]
    assert now.steps(0)
    assert len(desk.view(visit).branches) == 1


def test_an_edit_can_be_left_and_an_empty_one_is_refused(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    before = trace(desk, visit)
    desk.edit(visit)
    desk.save_edit(visit, "  ", form(desk))
    assert "empty" in visit.notice
    assert visit.editing == 0
    desk.edit(visit)
    assert (visit.editing, visit.returned) == (None, "")
    desk.save_edit(visit, "the dog", form(desk))  # nothing is being edited
    assert trace(desk, visit) is before


def test_a_raw_prompt_can_be_edited(desk: Desk, visit: Visit) -> None:
    run(desk, visit, use_template=False)
    desk.edit(visit)
    desk.save_edit(visit, "one two", form(desk, use_template=False))
    assert trace(desk, visit).experiment.prompt == "one two"


def test_a_cell_of_a_grid_becomes_the_run_and_gives_its_tokens(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    grid(desk, visit)
    found = visit.grid
    assert found.done
    assert [cell.overrides["seed"] for cell in found.cells] == [1, 2, 1, 2]
    assert found.cells[0].token_ids == found.cells[1].token_ids  # at temperature 0 the seed has no say
    desk.select(visit, {"cell": 3})
    assert visit.notice == ""
    assert trace(desk, visit).experiment.sampling.temperature == 1.5
    assert trace(desk, visit).experiment.stop.max_new_tokens == 6
    assert len(desk.view(visit).branches) == 1
    run(desk, visit, temperature=1.5, seed=2)
    assert tuple(ids(desk, visit)) == found.cells[3].token_ids


def test_a_grid_has_few_tokens_a_cell(desk: Desk, visit: Visit) -> None:
    for _ in desk.grid(visit, "0.5", "1", form(desk, max_new_tokens=90, min_new_tokens=90)):
        pass
    assert len(visit.grid.cells[0].token_ids) == MAX_TOKENS
    desk.select(visit, {"cell": 0})
    assert trace(desk, visit).experiment.stop.max_new_tokens == 90


@pytest.mark.parametrize("index", [0, 5, -1])
def test_a_cell_that_is_not_there_is_refused(desk: Desk, visit: Visit, index: int) -> None:
    if index:
        grid(desk, visit, "0", "1")
    desk.select(visit, {"cell": index})
    assert "press Grid again" in visit.notice


@pytest.mark.parametrize(
    ("temperatures", "seeds", "said"),
    [
        ("0, x", "1", "Temperatures of the grid: x is no number"),
        ("", "1", "Temperatures of the grid: “” is no number"),
        ("1", "1.5", "Seeds of the grid: 1.5 is no whole number. Write whole numbers"),
        (", ".join(map(str, range(1, 21))), "1", "20 temperatures and 1 seed make 20"),
        ("1", ",".join(map(str, range(500))), "1 temperature and 500 seeds make 500"),
        ("nan", "1", "is no number"),
        ("1", "1e999", "is no whole number"),
        ("1", " ", "Seeds of the grid: “” is no whole number"),
        ("0,1,2,3", "1,2,3,4", "4 temperatures and 4 seeds make 16"),
        (",".join(map(str, range(100_000))), "1", f"at most {MAX_CELLS} cells"),
    ],
)
def test_what_is_no_grid_is_refused_in_words(
    desk: Desk, visit: Visit, temperatures: str, seeds: str, said: str
) -> None:
    grid(desk, visit, temperatures, seeds)
    assert said in visit.notice
    assert visit.grid is None


def test_a_setting_that_the_engine_refuses_is_named(desk: Desk, visit: Visit) -> None:
    grid(desk, visit, "-1", "1")
    assert "sampling.temperature" in visit.notice


def test_numbers_may_be_written_in_several_ways() -> None:
    assert overrides(" 1;0.5 ,1.0", "3") == [{"temperature": 1.0, "seed": 3}, {"temperature": 0.5, "seed": 3}]
    digits = [own["seed"] for own in overrides("1", f"{2**63 - 1}, {2**63 - 2}, 1e3, 2.0")]
    assert digits == [2**63 - 1, 2**63 - 2, 1000, 2]
    with pytest.raises(Refused):
        overrides("1", "")


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


def test_the_form_follows_the_run_that_was_gone_back_to(page: Page, desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    run(desk, visit, temperature=2.0, seed=4)
    names = list(page.form)
    assert all(isinstance(value, dict) for value in page._refill(visit))  # nothing is to change
    desk.ask(visit, "take_branch")
    filled = dict(zip(names, page._refill(visit), strict=True))
    assert filled == form_values(desk.default)
    desk.step(visit, "", filled)
    assert "has ended" in visit.notice  # the run is as it was: finished, and not begun again


def test_the_page_shows_a_grid_as_it_comes_and_frees_run_at_its_end(page: Page, desk: Desk, visit: Visit) -> None:
    visit.station = "compare"
    before = page.frame(visit)["hidden"]
    assert before["compare-map"] is before["compare-map-heading"] is True
    values = form(desk)
    frames = page._grid(visit, "0.5, 1", "1", [values[name] for name in page.form])
    first = next(frames)
    assert first["disabled"]["grid"]
    assert visit.running
    *_, last = frames
    assert not last["disabled"]["grid"]
    assert last["hidden"]["compare-map"] is last["hidden"]["compare-map-heading"] is False


def test_the_page_puts_a_message_into_the_field_and_says_so(page: Page, desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    typed, frame = page._edit(visit, "")
    assert typed == "the cat sat"
    assert not frame["hidden"]["save-edit"]
    assert "Message 1 is in the field" in str(frame["first"]["notice"])
    typed, frame = page._edit(visit, "")
    assert typed == ""
    assert frame["hidden"]["save-edit"]


@pytest.mark.parametrize("left_for", ["a new conversation", "a record"])
def test_a_grid_that_is_left_does_not_come_back(desk: Desk, visit: Visit, left_for: str) -> None:
    run(desk, visit)
    record = saved(desk, visit)
    frames = desk.grid(visit, "0.5, 1", "1", form(desk))
    next(frames)
    assert visit.grid is not None
    if left_for == "a record":
        desk.play(visit, record)
    else:
        desk.new(visit, "the dog", form(desk))
    list(frames)
    assert (visit.grid, visit.asked) == (None, None)
