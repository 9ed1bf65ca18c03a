"""The page: header, rail, the conversation at the left, the panel of the chosen station at the right, the footer.

It turns what a person does into calls of `Intents` and what those answer into new values for the visible parts.
"""

import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr

from components import language, model_choice, relabel
from components.compose import form_values
from components.copy import DEFAULT, LANGUAGES, speak, words
from components.frame import frame
from components.header import Header
from components.intents import Intents
from components.lesson_player import strip, wiring
from components.panel import Panel
from components.panel_column import PanelColumn
from components.panels import PANELS
from components.settings_form import SettingsForm
from components.sharing import button as sharing
from components.telling import say_to
from components.visit import Visit
from components.widgets import host, rail, token_strip
from components.widgets.rail import Station
from engine.experiment import Experiment

log = logging.getLogger(__name__)

#: Events that may wait for the model at once, and pages that may open at once; the server has 40 threads in all.
OPENING_EVENTS = 6
HEAVY_EVENTS = 24


class Page:
    """Builds the components and wires every event; `blocks` is what is launched."""

    blocks: gr.Blocks

    def __init__(
        self,
        intents: Intents,
        default: Experiment,
        model_title: str,
        offered: Sequence[tuple[str, str]] = (),
        *,
        spoken: str = DEFAULT,
    ) -> None:
        """A page whose labels are in the language `spoken`; the one that is served, in the first, knows the others."""
        self.intents = intents
        others = [name for name in LANGUAGES if name != DEFAULT] if spoken == DEFAULT else []
        layouts: dict[str, gr.Blocks] = {
            name: Page(intents, default, model_title, offered, spoken=name).blocks for name in others
        }
        speak(spoken)
        say = words("page")
        with gr.Blocks(
            title="Decodescope", analytics_enabled=False, fill_width=True, delete_cache=(600, 600)
        ) as self.blocks:
            self.visit = gr.State(Visit())
            host.widget("skip", "skip", say.text("skip"), {"to": "right"})
            self.header = Header(model_title, offered)
            self.rail = rail.build("rail", say.text("rail"))
            with gr.Row(elem_id="main"):
                with gr.Column(elem_id="left", elem_classes="pane"):
                    self._left(default)
                with gr.Column(elem_id="right", elem_classes="pane"):
                    self.lesson = strip.build()
                    self.panels = PanelColumn()
            rail.build("status", say.text("status"), variant="status")
            self.feed = host.feed("feed", say.text("feed"))
            self.names = relabel.build()
            self.labels = relabel.Labels(self.blocks, layouts)
            self._wire()

    def _left(self, default: Experiment) -> None:
        say = words("page")
        gr.Markdown(f"## {say.text('conversation')}", elem_classes="panel-title")
        self.conversation = token_strip.build("conversation", say.text("conversation"))
        host.widget("heard", "heard", say.text("heard"), {"of": "conversation"})
        rail.build("notice", say.text("notice"), variant="status", live=True)
        self.message = gr.Textbox(
            placeholder=say.text("message"), lines=1, max_lines=6, show_label=False, elem_id="message",
            label=say.text("message_label"),
        )  # fmt: skip
        with gr.Row(elem_classes="go"):
            self.step = gr.Button(say.text("step"), elem_id="step")
            self.run = gr.Button(say.text("run"), elem_id="run", variant="primary")
            self.stop = gr.Button(say.text("stop"), elem_id="stop")
            self.back = gr.Button(say.text("back"), elem_id="back")
            self.new = gr.Button(say.text("new"), elem_id="new")
            self.edit = gr.Button(say.text("edit"), elem_id="edit")
            self.save_edit = gr.Button(say.text("save_edit"), elem_id="save-edit", variant="primary")
            self.run_live = gr.Button(words("record").text("run_live"), elem_id="run-live", variant="primary")
        gr.Markdown(f"## {say.text('timeline')}", elem_classes="panel-title")
        self.timeline = token_strip.build("timeline", say.text("timeline"))
        self.form = SettingsForm(default).build()
        # Hands for the keyboard: the arrow keys press these, Tab does not reach them.
        with gr.Row(elem_classes="keyboard-only"):
            self.left = gr.Button(say.text("left"), elem_id="move-left")
            self.right = gr.Button(say.text("right"), elem_id="move-right")

    def frame(self, visit: Visit) -> dict[str, Any]:
        """The feed's value: everything in sight, anew. A record that cannot be shown is closed."""
        try:
            return frame(self.intents.view(visit), visit, self.panels.parts, self.owner[visit.station])
        except Exception:  # a file may come from anybody, and be wrong in ways that only a panel notices
            if visit.playing is None:
                raise
            log.exception("a record cannot be shown")
            self.intents.close_record(visit)
            visit.said, visit.notice = "", say_to(visit, "record").text("broken")
        return frame(self.intents.view(visit), visit, self.panels.parts, self.owner[visit.station])

    @functools.cached_property
    def owner(self) -> dict[str, Panel]:
        """The panel behind each station of the rail."""
        view = self.intents.view(Visit())
        return {station.id: panel for panel in PANELS for station in panel.stations(view)}

    # What a person does.

    def _wire(self) -> None:
        light: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": None}
        # Heavy events wait for the model; together they stay under the server's threads, so that light ones never wait.
        heavy = {**light, "concurrency_limit": HEAVY_EVENTS, "concurrency_id": "model"}
        asked = [self.visit, self.message, *self.form.values()]
        # A page opens in lanes of its own: visitors who run for minutes keep nobody out.
        opening = {**light, "concurrency_limit": OPENING_EVENTS, "concurrency_id": "open"}
        opened = self.blocks.load(
            self._open, self.header.language, [self.visit, self.feed], js=language.REMEMBERED, **opening
        )
        opened.then(self._restore, self.visit, [self.panels.tabs, *self.form.values()], **light)
        sharing.wire(self.header.link, self.header.said, self.intents.link, asked, list(self.form), **light)
        language.wire(self.header.language, self.visit, self.feed, self.frame, **light)
        relabel.wire(self.feed, self.labels, self.names, self.header.language, **light)
        self.blocks.unload(self._close)
        for button, intent in ((self.step, self.intents.step), (self.new, self.intents.new)):
            made = button.click(self._with_form(intent), asked, [self.message, self.feed], **heavy)
            model_choice.follow(self, made)
        begun = gr.on(
            [self.run.click, self.message.submit], self._take, [self.visit, self.message], self.message, **light
        )
        ended = begun.then(self._run, [self.visit, *self.form.values()], self.feed, **heavy)
        model_choice.follow(self, ended.then(self._give_back, self.visit, self.message, **light))
        self.edit.click(self._edit, self.visit, [self.message, self.feed], **light)
        self.save_edit.click(self._with_form(self.intents.save_edit), asked, [self.message, self.feed], **heavy)
        for button, *fields in self.panels.grids:
            button.click(self._grid, [self.visit, *fields, *self.form.values()], self.feed, **heavy)
        self.stop.click(self._plain(self.intents.stop), self.visit, self.feed, **light)
        self.back.click(self._plain(self.intents.back), self.visit, self.feed, **heavy)
        live = self.run_live.click(self._plain(self.intents.run_live), self.visit, self.feed, **heavy)
        live.then(self._refill, self.visit, [*self.form.values()], **light)
        self.header.page_button.wire(self.intents, self.visit, self.feed, self.frame, **heavy)
        self.header.records.wire(
            self.intents, self.visit, self.feed, self.frame, self._refill, [*self.form.values()], **heavy
        )
        for button, by in ((self.left, -1), (self.right, 1)):
            move = functools.partial(self.intents.move, by=by)
            button.click(self._plain(move), self.visit, self.feed, **heavy)
        # By itself gradio would drop a choice that comes before the one before it is shown.
        each: dict[str, Any] = {"trigger_mode": "multiple"}
        self.rail.select(self._choose_station, [self.visit], [self.panels.tabs, self.feed], **light, **each)
        for part in (self.conversation, self.timeline, *self._selectable()):
            chosen = part.select(self._select, self.visit, self.feed, **heavy, **each)
            if part in self.panels.parts["compare"]:  # what is chosen there may bring settings of its own
                chosen.then(self._refill, self.visit, [*self.form.values()], **light)
        seen = ((self._panel, [self.panels.tabs, self.feed]), (self._refill, [*self.form.values()]))
        wiring.wire(self.header.lessons, self.lesson, self.visit, self.intents, seen, **heavy)
        for button, name in self.panels.asks:
            ask = self._plain(functools.partial(self.intents.ask, probe=name))
            asking = button.click(ask, self.visit, self.feed, **heavy)
            if name == "take_branch":
                asking.then(self._refill, self.visit, [*self.form.values()], **light)
        for typed, field in self.panels.queries:
            look_up = functools.partial(self._look_up, field=field)
            typed.submit(look_up, [self.visit, typed], self.feed, **heavy)
        model_choice.wire(self)

    def _selectable(self) -> list[gr.HTML]:
        return [part for parts in self.panels.parts.values() for part in parts]

    def _open(self, spoken: str, request: gr.Request) -> Iterator[list[Any]]:
        for said in self.intents.waiting(spoken):
            loading = rail.value([Station("", "", said)])
            yield [gr.skip(), host.feed_value({"notice": loading}, {}, hidden={}, disabled={}, language=spoken)]
        visit = self.intents.open(request.session_hash or "", spoken, sharing.text_in_address(request))
        if visit.station not in self.owner:  # a link names it, which may come from anywhere
            visit.station = Visit().station
        yield [visit, self.frame(visit)]

    def _restore(self, visit: Visit) -> list[Any]:
        """What a link restores besides the feed: the open tab and the form."""
        if not visit.refill:
            return [gr.skip()] * (len(self.form) + 1)
        return [gr.Tabs(selected=self.owner[visit.station].STATION), *self._refill(visit)]

    def _close(self, request: gr.Request) -> None:
        self.intents.close(str(request.session_hash))

    def _plain(self, intent: Callable[[Visit], None]) -> Callable[[Visit], dict[str, Any]]:
        def handle(visit: Visit) -> dict[str, Any]:
            intent(visit)
            return self.frame(visit)

        return handle

    def _with_form(self, intent: Callable[[Visit, str, dict[str, Any]], None]) -> Callable[..., list[Any]]:
        def handle(visit: Visit, message: str, *values: Any) -> list[Any]:
            intent(visit, message, self._form(values))
            return [message if visit.notice else "", self.frame(visit)]

        return handle

    def _take(self, visit: Visit, message: str) -> str:
        """The typed message leaves its field before the run, which may last."""
        visit.typed = message
        return ""

    def _run(self, visit: Visit, *values: Any) -> Iterator[dict[str, Any]]:
        message, visit.typed = visit.typed, ""
        if visit.running:  # Enter was pressed during a run
            visit.notice, visit.typed = say_to(visit).text("answer_first"), message
            yield self.frame(visit)
            return
        visit.running, taken = True, False
        try:
            for _ in self.intents.run(visit, message, self._form(values)):
                taken = True
                yield self.frame(visit)
        finally:  # also where a frame fails or the page closes: Run must not stay disabled
            visit.running = False
            # The notice cannot tell whether the message was refused: another event may have changed it meanwhile.
            visit.typed = "" if taken else message
        yield self.frame(visit)

    def _grid(self, visit: Visit, temperatures: str, seeds: str, *values: Any) -> Iterator[dict[str, Any]]:
        if visit.running:
            visit.notice = say_to(visit).text("answer_first")
            yield self.frame(visit)
            return
        visit.running = True
        try:
            for _ in self.intents.grid(visit, temperatures, seeds, self._form(values)):
                yield self.frame(visit)
        finally:
            visit.running = False
        yield self.frame(visit)

    def _edit(self, visit: Visit) -> list[Any]:
        """The text of a message goes into the field, or out of it again."""
        self.intents.edit(visit)
        typed, visit.typed = visit.typed, ""
        return [typed, self.frame(visit)]

    def _refill(self, visit: Visit) -> list[Any]:
        """The form shows the settings of the run that was gone back to."""
        trace = self.intents.view(visit).trace
        if not visit.refill or trace is None:
            return [gr.skip()] * len(self.form)
        visit.refill = False
        now = form_values(trace.experiment)
        return [now[name] for name in self.form]

    def _give_back(self, visit: Visit) -> Any:
        """A message that was refused comes back into its field."""
        return visit.typed or gr.skip()

    def _form(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.form, values, strict=True))

    def _choose_station(self, visit: Visit, event: gr.EventData) -> list[Any]:
        visit.choices = mine = visit.choices + 1
        station = _sent(event).get("id")
        if isinstance(station, str) and station in self.owner:
            visit.station = station
        shown = self._panel(visit)
        return shown if visit.choices == mine else [gr.skip(), gr.skip()]

    def _panel(self, visit: Visit) -> list[Any]:
        return [gr.Tabs(selected=self.owner[visit.station].STATION), self.frame(visit)]

    def _select(self, visit: Visit, event: gr.EventData) -> Any:
        visit.choices = mine = visit.choices + 1
        data = _sent(event)
        key = data.get("key") or data
        if isinstance(key, dict):
            self.intents.select(visit, key)
        frame = self.frame(visit)
        return frame if visit.choices == mine else gr.skip()

    def _look_up(self, visit: Visit, text: str, *, field: str) -> dict[str, Any]:
        self.intents.look_up(visit, text, field)
        return self.frame(visit)


def _sent(event: gr.EventData) -> dict[str, Any]:
    """What a widget sent with its event. It comes from the browser, so it may be anything."""
    return event._data if isinstance(event._data, dict) else {}
