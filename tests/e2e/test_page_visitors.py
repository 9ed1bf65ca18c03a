"""Several visitors: two at once share nothing and both get on, and whoever leaves gives the cache back."""

from concurrent.futures import Future

import pytest

from app import launch
from components.desk import Desk
from components.page import Page
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.runtime import Runtime
from engine.settings import Settings
from tests.e2e import browser as harness
from tests.e2e.conftest import OpenApp, RunTrace
from tests.e2e.experiments import default_experiment, shown_tokens
from tests.e2e.visitor import Visitor
from tests.patience import eventually

LONG = 32


def test_two_at_once_share_nothing_and_both_get_on(visit: OpenApp, run_trace: RunTrace) -> None:
    questions = ("Tell me about the sea.", "Write a poem.")
    pages = [visit(), visit()]
    for page, question in zip(pages, questions, strict=True):
        page.set("min_new_tokens", LONG)
        page.set("max_new_tokens", LONG)
        page.type(question)
    for page in pages:
        page.press("run")
    seen: list[tuple[int, int]] = []

    def look() -> bool:
        seen.append((len(pages[0].tokens), len(pages[1].tokens)))
        return all(page.runs_ended for page in pages)

    eventually(look, "both ends")
    assert any(0 < first < LONG and 0 < second < LONG for first, second in seen)
    for page, question in zip(pages, questions, strict=True):
        messages = [{"role": "user", "content": question}]
        trace = run_trace(
            default_experiment(messages=messages, sampling={"min_new_tokens": LONG}, stop={"max_new_tokens": LONG})
        )
        assert page.tokens == shown_tokens(trace)
        assert page.messages[1] == question


@pytest.fixture
def small_app(llama: LoadedModel):
    """The page over a small random model in this process: its address, and the runtime behind it."""
    runtime = Runtime(llama, load_catalog(), Settings(max_new_tokens=10_000))
    default = Experiment.model_validate(
        {
            "version": 1,
            "model": llama.facts.model_id,
            "messages": [{"role": "user", "content": "the cat sat"}],
            "sampling": {"min_new_tokens": 200},
            "stop": {"max_new_tokens": 400},
        }
    )
    ready: Future[Runtime] = Future()
    ready.set_result(runtime)
    page = Page(Desk(ready, default), default, llama.facts.title, runs=Settings.max_runs)
    launch(page.blocks, quiet=True)
    yield page.blocks.local_url, runtime
    page.blocks.close()
    runtime.shut_down()


@pytest.mark.parametrize("running", [False, True])
def test_a_closed_tab_gives_its_cache_back(small_app, chromium, running: bool) -> None:
    address, runtime = small_app
    sessions = runtime._sessions._sessions
    with harness.opened(chromium, address, width=1280, height=800, dark=False) as watched:
        page = Visitor(watched)
        page.step()
        if running:
            page.begin()
        (session,) = sessions.values()
        assert session.conversation.cache_bytes > 0
        watched.page.close(run_before_unload=True)
        eventually(lambda: not sessions, "the end of the session")
        eventually(lambda: session.conversation.cache_bytes == 0, "the return of the cache")
        eventually(lambda: not session.running, "the end of the run")  # a moment after its cache went
