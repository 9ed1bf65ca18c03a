"""What happens on the page: what a person does becomes a call of `Intents`, and what that answers new values."""

import functools
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradio as gr

from components import lanes, language, model_choice, relabel
from components.choices import as_dict, order
from components.compose import form_values
from components.copy import DEFAULT, LANGUAGES, speak
from components.frame import ahead, early, frame
from components.intents import Intents
from components.layout import Layout
from components.lesson_player import wiring
from components.panel import Panel
from components.panels import PANELS
from components.saying import Saying
from components.sharing import button as sharing
from components.telling import say_to
from components.visit import Visit
from components.widgets import host
from engine.experiment import Experiment

log = logging.getLogger(__name__)


class Page(Saying):
    """Wires every event of the layout; `blocks` is what is launched."""

    def __init__(
        self,
        intents: Intents,
        default: Experiment,
        model_title: str,
        offered: Sequence[tuple[str, str]] = (),
        *,
        runs: int,
    ) -> None:
        """`runs` is how many the engine lets be under way at once, over all models."""
        self.intents = intents
        # Labels of the further languages are read off layouts that nobody serves.
        others = {}
        for name in [name for name in LANGUAGES if name != DEFAULT]:
            speak(name)
            others[name] = Layout(default, model_title, offered).blocks
        speak(DEFAULT)
        super().__init__(default, model_title, offered)
        with self.blocks:
            self.labels = relabel.Labels(self.blocks, others)
            self._wire(runs)

    def frame(self, visit: Visit, before: dict[str, Any] | None = None) -> dict[str, Any]:
        """The feed's value: everything in sight, anew; with `before`, the value before, only the newest token is.

        A record that cannot be shown is closed. While the first model is being loaded the language alone can change.
        """
        if not self.intents.ready:
            return early(visit)
        began = host.moment()
        try:
            return self._frame(visit, began, before)
        except Exception:  # a file may come from anybody, and be wrong in ways that only a panel notices
            if visit.playing is None:
                raise
            log.exception("a record cannot be shown")
            self.intents.close_record(visit)
            visit.said, visit.notice = "", say_to(visit, "record").text("broken")
        return self._frame(visit, began)

    def _frame(self, visit: Visit, began: int, before: dict[str, Any] | None = None) -> dict[str, Any]:
        view = self.intents.view(visit)
        if visit.station not in self.owner:  # a link names it, which may come from anywhere
            visit.station = Visit().station
        if before is not None:
            return ahead(before, view, visit, began=began)
        return frame(view, visit, self.panels.parts, self.owner[visit.station], began=began)

    @property
    def quiet(self) -> dict[str, Any]:
        """Options of every event. Whatever shows progress, gradio's page copies its value and sets its state anew with
        each message of a run: hundreds of fields or a feed of 30 KB would cost the run half of its speed, so what shows
        it is one small part, and hidden.
        """
        return {"show_progress": "hidden", "show_progress_on": self.names, "api_visibility": "private"}

    @functools.cached_property
    def owner(self) -> dict[str, Panel]:
        """The panel behind each station of the rail."""
        view = self.intents.view(Visit())
        return {station.id: panel for panel in PANELS for station in panel.stations(view)}

    # What a person does.

    def _wire(self, runs: int) -> None:
        light: dict[str, Any] = {**self.quiet, "concurrency_limit": None}
        heavy, opening = {**light, **lanes.heavy(runs)}, {**light, **lanes.OPENING}
        filled = self.settings.values
        message = self.message.text
        asked = [self.visit, message, filled]
        told = [self.message.settled, self.feed]
        opened = self.blocks.load(
            self._open, [self.visit, self.header.language], [self.visit, self.feed], js=language.REMEMBERED, **opening
        )
        restored = (self._restore, [self.panels.tabs, *self.form.values()])
        opened.then(restored[0], self.visit, restored[1], **light)
        link = (self.header.link, self.header.said, self.intents.link)
        sharing.wire(*link, self.settings, self.visit, message, self.feed, self.frame, **light)
        language.wire(self.header.language, self.visit, self.feed, self.frame, **light)
        relabel.wire(self.feed, self.labels, self.names, self.header.language, **light)
        self.blocks.unload(self._close)
        do = self.intents
        for button, intent in ((self.step, do.step), (self.new, do.new), (self.save_edit, do.save_edit)):
            made = self.settings.pressed(button.click).then(self._with_form(intent), asked, told, **heavy)
            self._follow_model(self.message.settle(made))
        begun = self.settings.pressed(functools.partial(gr.on, [self.run.click, message.submit])).then(
            self._take, [self.visit, message], told, **light
        )
        # By itself gradio drops what comes before the one before is shown: a message on its way into a run too.
        each: dict[str, Any] = {"trigger_mode": "multiple"}
        ended = self.message.settle(begun).then(self._run, [self.visit, filled], self.feed, **heavy, **each)
        given_back = ended.then(self._give_back, self.visit, self.message.settled, **light, **each)
        self._follow_model(self.message.settle(given_back))
        self.edit.click(self._edit, [self.visit, message], [message, self.feed], **light)
        for button, *fields in self.panels.grids:
            self.settings.pressed(button.click).then(self._grid, [self.visit, *fields, filled], self.feed, **heavy)
        self.stop.click(self._plain(self.intents.stop), self.visit, self.feed, **light)
        self.back.click(self._plain(self.intents.back), self.visit, self.feed, **heavy)
        live = self.run_live.click(self._plain(self.intents.run_live), self.visit, self.feed, **heavy)
        live.then(self._refill, self.visit, [*self.form.values()], **light)
        self.header.page_button.wire(self.intents, self.visit, self.feed, self.frame, **heavy)
        self.header.records.wire(
            self.intents, self.visit, self.feed, self.frame, self._refill, [*self.form.values()], **heavy
        )
        for button, by in ((self.left, -1), (self.right, 1)):
            move = functools.partial(self._move, by=by)
            button.click(move, self.visit, self.feed, **heavy, **each)
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
            asking.then(None, js=f"() => decodescope.answered({json.dumps(button.elem_id)})", api_visibility="private")
            if name == "take_branch":
                asking.then(self._refill, self.visit, [*self.form.values()], **light)
        for typed, field in self.panels.queries:
            look_up = functools.partial(self._look_up, field=field)
            typed.submit(look_up, [self.visit, typed], self.feed, **heavy)
        shown = (self.feed, self.frame)
        model_choice.wire(self.header.model, self.visit, self.settings, self.intents, shown, restored, **self.quiet)

    def _follow_model(self, event: gr.events.Dependency) -> None:
        model_choice.follow(self.header.model, self.visit, self.intents, event, **self.quiet)

    def _selectable(self) -> list[gr.HTML]:
        return [part for parts in self.panels.parts.values() for part in parts]

    def _open(self, visit: Visit, spoken: str, request: gr.Request) -> Iterator[list[Any]]:
        """Fills the very visit that the page has had so far: meanwhile its language may be chosen."""
        if visit.language == DEFAULT:  # else it was chosen while this waited for its turn
            visit.language = spoken
        for said in self.intents.waiting(visit):
            yield [gr.skip(), early(visit, said)]
        spoken = visit.language
        opened = self.intents.open(request.session_hash or "", spoken, sharing.text_in_address(request))
        if visit.language != spoken:
            opened.language = visit.language
        vars(visit).update(vars(opened))
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

    def _grid(self, visit: Visit, temperatures: str, seeds: str, values: Sequence[Any]) -> Iterator[dict[str, Any]]:
        form = self.settings.read(values)
        if visit.running:
            visit.notice = say_to(visit).text("answer_first")
            yield self.frame(visit)
            return
        visit.running = True
        try:
            for _ in self.intents.grid(visit, temperatures, seeds, form):
                yield self.frame(visit)
        finally:
            visit.running = False
        yield self.frame(visit)

    def _refill(self, visit: Visit) -> list[Any]:
        """The form shows the settings of the run that was gone back to."""
        trace = self.intents.view(visit).trace if visit.refill else None
        if trace is None:
            return [gr.skip()] * len(self.form)
        visit.refill = False
        now = form_values(trace.experiment)
        return [now[name] for name in self.form]

    def _choose_station(self, visit: Visit, event: gr.EventData) -> list[Any]:
        data = as_dict(event._data)
        station = data.get("id")
        if isinstance(station, str) and station in self.owner:
            visit.choose({"station": station}, order(data))
        frame = self._of_last_choice(visit)
        return [self._tab(visit), frame]

    def _move(self, visit: Visit, by: int) -> Any:
        self.intents.move(visit, by)
        return self._of_last_choice(visit)

    def _of_last_choice(self, visit: Visit) -> Any:
        """The frame; nothing where a later choice was made while it was drawn, which has a frame of its own."""
        mine = visit.choices
        frame = self.frame(visit)
        return frame if visit.choices == mine else gr.skip()

    def _panel(self, visit: Visit) -> list[Any]:
        frame = self.frame(visit)
        return [self._tab(visit), frame]

    def _tab(self, visit: Visit) -> Any:
        """Asked for after the frame, which takes its time: the tab must be that of the station chosen last."""
        return gr.Tabs(selected=self.owner[visit.station].STATION) if self.intents.ready else gr.skip()

    def _select(self, visit: Visit, event: gr.EventData) -> Any:
        data = as_dict(event._data)
        key = data.get("key") or data
        if isinstance(key, dict):
            self.intents.select(visit, key, order(data))
        changed = isinstance(key, dict) and not {"token_id", "cell"}.isdisjoint(key)  # the run, which must be seen
        return self.frame(visit) if changed else self._of_last_choice(visit)

    def _look_up(self, visit: Visit, text: str, *, field: str) -> dict[str, Any]:
        self.intents.look_up(visit, text, field)
        return self.frame(visit)
