"""A person at the page: presses, types, clicks and reads, and waits for what must come instead of for a time."""

from collections.abc import Callable

from playwright.sync_api import Locator

from tests.e2e.browser import Watched
from tests.patience import PATIENCE, eventually

COUNT_RUNS = """() => {
  const stop = document.querySelector("#stop");
  window.runsEnded = 0;
  new MutationObserver(() => (window.runsEnded += stop.disabled)).observe(stop, { attributeFilter: ["disabled"] });
}"""

# Charts get by a timer what text and timeline show at once, and hear at the next frame that they are in sight.
CHARTS_KNOW = """() => new Promise((resolve) =>
  setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))))"""


class Visitor:
    """One fresh visitor, whose page shows the default experiment, rendered and waiting for its first token.

    `shows` is what to wait for on a page that opens otherwise.
    """

    def __init__(self, watched: Watched, *, shows: str = "#timeline .t") -> None:
        self.watched = watched
        self.page = watched.page
        self.page.set_default_timeout(1000 * PATIENCE)
        self._unfolded = False
        eventually(lambda: self.texts(shows), "the first prompt")
        self.page.evaluate(COUNT_RUNS)

    # What is done.

    def press(self, button: str) -> None:
        self.page.click(f"#{button}")

    def step(self, times: int = 1) -> None:
        """Press Step and wait for its token."""
        for _ in range(times):
            count = len(self.tokens)
            self.press("step")
            eventually(lambda count=count: len(self.tokens) == count + 1, "a token")  # type: ignore[misc]

    def run(self) -> None:
        """Press Run and wait for the end of the run."""
        self._awaiting_end(lambda: self.press("run"))

    def say(self, text: str) -> None:
        """Type a message, press Enter and wait for the end of the answer."""
        self.type(text)
        self._awaiting_end(lambda: self.page.press("#message textarea", "Enter"))

    def type(self, text: str) -> None:
        self.page.fill("#message textarea", text)

    def begin(self) -> None:
        """Press Run and wait for the first tokens only."""
        count = len(self.tokens)
        self.press("run")
        eventually(lambda: len(self.tokens) > count, "the first token of a run")

    def reload(self) -> None:
        """Load the page anew once no event is open: gradio complains of a stream that breaks off."""
        eventually(lambda: self.calm, "the end of all events")
        self.page.reload()

    def open(self, station: str) -> None:
        """Choose a station of the rail and wait until it is the open one."""
        self.page.click(f'#rail .st[data-id="{station}"]')
        self.page.wait_for_selector(f'#rail .st[data-id="{station}"][aria-current]')

    def select(self, position: int) -> None:
        """Click a chip of the timeline and wait until it is the selected one."""
        self.page.click(f'#timeline .t[data-position="{position}"]')
        self.page.wait_for_selector(f'#timeline .t[data-position="{position}"][aria-current]')

    def set(self, field: str, value: str | int | float | bool) -> None:
        """Put a value into a field of the settings."""
        control = self.control(field)
        if isinstance(value, bool):
            control.set_checked(value)
        else:
            control.fill(str(value))

    def choose(self, field: str, choice: str) -> None:
        """Take a choice of a drop-down field by its words."""
        self.control(field).click()
        self.page.get_by_role("option", name=choice, exact=True).click()

    def control(self, field: str) -> Locator:
        """The input of a field of the settings; all folds are opened first, for what is folded away is not there."""
        if not self._unfolded:
            for fold in self.page.locator("#left .fold > button").all():
                fold.click()
            self._unfolded = True
        return self.page.locator(f"#set-{field} :is(input, textarea)").first

    def drawn(self, chart: str) -> None:
        """Scroll to a chart and wait until it shows its newest figure: out of sight it keeps the one it had."""
        self.page.locator(f"#{chart} .plot").scroll_into_view_if_needed()
        self.page.evaluate(CHARTS_KNOW)
        self.page.wait_for_selector(f"#{chart} .plot:not([aria-busy]) .main-svg text >> nth=0")

    def _awaiting_end(self, begin: Callable[[], None]) -> None:
        before = self.runs_ended
        begin()
        eventually(lambda: self.runs_ended > before, "the end of the run")

    # What is seen.

    @property
    def calm(self) -> bool:
        """True while gradio has no stream of messages open, which it has for as long as an event goes on."""
        self.page.wait_for_timeout(1)  # for the browser's word of it to come in
        return not self.watched.streams

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.page.locator(selector).evaluate_all("nodes => nodes.map((node) => node.textContent)")
        return found

    def station(self, name: str) -> str:
        """The live line of a station."""
        return self.texts(f'#rail .st[data-id="{name}"] b')[0]

    def note(self, name: str) -> str:
        """What stands under the live line."""
        return self.texts(f'#rail .st[data-id="{name}"] em')[0]

    def rows(self, table: str) -> list[list[str]]:
        """The cells of a table's body."""
        found: list[list[str]] = self.page.locator(f"#{table} tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
        )
        return found

    def caption(self, table: str) -> str:
        return "".join(self.texts(f"#{table} .table-caption"))

    @property
    def stations(self) -> list[str]:
        names: list[str] = self.page.locator("#rail .st").evaluate_all("nodes => nodes.map((node) => node.dataset.id)")
        return names

    @property
    def tokens(self) -> list[str]:
        """The chosen tokens of the turn, as the timeline writes them."""
        return self.texts("#timeline .t:is([data-state=sampled], [data-state=forced], [data-state=grammar])")

    @property
    def messages(self) -> list[str]:
        return self.texts("#conversation .strip")

    @property
    def notice(self) -> str:
        return " ".join(self.texts("#notice .fact"))

    @property
    def status(self) -> list[str]:
        return self.texts("#status .fact")

    @property
    def cursor(self) -> int:
        """The selected position."""
        position: str = self.page.locator("#timeline .t[aria-current]").evaluate("node => node.dataset.position")
        return int(position)

    @property
    def running(self) -> bool:
        return self.page.is_enabled("#stop")

    @property
    def runs_ended(self) -> int:
        count: int = self.page.evaluate("window.runsEnded")
        return count

    def shows(self, selector: str) -> bool:
        return self.page.is_visible(selector)
