"""Two models on one page: chosen in the header, loaded meanwhile, each with its own tokens."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from gradio_client import Client

from app import compose, launch
from components.copy import words_in
from components.frame import BUTTONS
from engine.loading.progress import Progress
from engine.many_runtimes import ManyRuntimes
from engine.models_at_hand import ModelsAtHand
from tests.e2e.conftest import OpenPage
from tests.e2e.visitor import Visitor
from tests.engine.test_many_runtimes import Shop, catalog
from tests.patience import PATIENCE, eventually


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def hand(shop: Shop) -> ModelsAtHand:
    return ModelsAtHand(catalog(), started="first", offered=["second"], loader=shop.load)


@pytest.fixture
def two(hand: ModelsAtHand) -> Iterator[str]:
    """The page's address; two small models are offered."""
    many: Future[ManyRuntimes] = Future()
    blocks = compose(many, hand)
    launch(blocks, quiet=True)
    assert hand.begin("first").runtime
    many.set_result(ManyRuntimes(hand))
    yield str(blocks.local_url)
    blocks.close()
    many.result().shut_down()


def test_a_model_is_chosen_loaded_and_run_while_the_other_goes_on(
    two: str, shop: Shop, hand: ModelsAtHand, browser_page: OpenPage
) -> None:
    go_on = threading.Event()

    def wait(model_id: str, report: Any) -> None:
        report(Progress("downloading", 1 << 20, 1 << 22))
        assert go_on.wait(PATIENCE)

    shop.before = wait
    visitor = Visitor(browser_page(two))
    page, model = visitor.page, visitor.page.locator("#model input")
    assert model.input_value() == "First"
    model.focus()
    page.wait_for_selector("[role=option]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    eventually(
        lambda: "Second is being downloaded, once: 1.00 MiB of 4.00 MiB." in page.inner_text("#notice"), "the notice"
    )
    visitor.step()
    assert len(visitor.tokens) == 1
    go_on.set()
    eventually(lambda: not visitor.tokens, "the new conversation")
    eventually(lambda: page.inner_text("#notice") == "", "the end of the notice")
    assert model.input_value() == "Second"
    visitor.run()
    # The page's own run again, over the endpoint, on the model that it names.
    sessions = shop.here["second"]._sessions._sessions.values()
    (session,) = [one for one in sessions if one.conversation]
    assert session.conversation is not None
    shown = session.conversation.trace
    assert shown.experiment.model == "second"
    given = Client(two, verbose=False).predict(shown.experiment.model_dump(mode="json"), api_name="/trace")
    ids = [event["token_id"] for event in given["events"] if event["kind"] == "stepped"]
    assert ids == [step.token_id for step in shown.steps(0)]
    assert len(visitor.tokens) == len(ids)
    visitor.open("model")
    assert [row[0] for row in visitor.rows("model-memory")] == ["float32", "bfloat16", "4bit"]
    # Memory runs short elsewhere: the model goes, and the visit begins again on the first one.
    assert hand._put_one_away(0)
    visitor.press("step")
    eventually(lambda: "put away" in page.inner_text("#notice"), "the notice of the model that went")
    eventually(lambda: model.input_value() == "First", "the first model")


def test_what_is_pressed_while_the_first_model_is_loaded_is_not_lost(
    hand: ModelsAtHand, shop: Shop, browser_page: OpenPage
) -> None:
    go_on = threading.Event()
    shop.before = lambda *_: None if go_on.wait(PATIENCE) else pytest.fail("the model was never to come")
    many: Future[ManyRuntimes] = Future()
    blocks = compose(many, hand)
    launch(blocks, quiet=True)
    try:
        watched = browser_page(str(blocks.local_url))
        page, say = watched.page, words_in("zh", "page")
        eventually(lambda: "First is" in page.inner_text("#notice"), "the notice")
        page.click("#record-menu > button")
        page.wait_for_selector("#record-save")
        seen = [name for name in BUTTONS if page.locator(f"#{name}").is_visible()]
        assert set(BUTTONS) - set(seen) == {"save-edit", "run-live"}
        assert [name for name in seen if not page.locator(f"#{name}").is_disabled()] == []
        assert not page.locator("[id^=ask-]:visible").count()
        page.fill("#message textarea", "the dog")
        page.press("#message textarea", "Enter")
        page.get_by_label("中文", exact=True).check()
        eventually(lambda: page.inner_text("#run").strip() == say.text("run"), "the labels")
        still = say.text("loading_waiting", title="First")
        eventually(lambda: page.inner_text("#notice").strip() == still, "the notice in Chinese")
        go_on.set()
        assert hand.begin("first").runtime
        many.set_result(ManyRuntimes(hand))
        visitor = Visitor(watched)
        title = words_in("zh", "prompt").title
        assert visitor.texts('#rail .st[data-id="prompt"] small') == [title]
        assert page.get_by_label("中文", exact=True).is_checked()
        assert page.input_value("#message textarea") == "the dog"
        assert [name for name in seen if page.locator(f"#{name}").is_disabled()] == ["stop"]
        assert visitor.notice == ""
        assert len(hand.begin("first").runtime._sessions._sessions) == 1
    finally:
        go_on.set()
        blocks.close()
        hand.begin("first").ready.result().shut_down()


def test_with_one_model_its_name_is_plain_text(visit: Any) -> None:
    field = visit().page.locator("#model input")
    assert field.input_value() == "SmolLM2 135M Instruct"
    assert field.is_disabled()
