"""What a person does on the page, carried to the runtime; what the runtime refuses comes back as a notice."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from components.branching import Branching
from components.choices import LONGEST_QUERY, about, chosen, positions
from components.choosing import Choosing
from components.compare.panel import chosen as compared
from components.compose import as_raw_prompt, compose, first_question
from components.context.ways import every_way
from components.copy import DEFAULT, words
from components.lesson_player.teaching import Teaching
from components.next_run import NextRun, next_run, waiting
from components.panel import View
from components.playing import Player, live_only
from components.recording import Recording
from components.sharing.intents import Sharing
from components.sharing.place import land
from components.telling import taken, telling, told
from components.visit import Visit
from engine.experiment import Experiment
from engine.record import Record
from engine.refusals import Refused, SessionGone
from engine.trace import Trace

if TYPE_CHECKING:
    from engine.many_runtimes import ManyRuntimes
    from engine.models_at_hand import ModelsAtHand
    from engine.runtime import Runtime

#: Results of probes that are kept for a visit.
REMEMBERED = 16

#: Probes of a step that was made: what they find stays true while the run goes on.
OF_A_STEP_MADE = frozenset({"distribution"})


class Desk(Branching, Choosing, Player, Recording, Teaching, Sharing):
    """The intents of `components.intents.Intents` over one runtime; the visit says whose session is meant."""

    def __init__(
        self,
        runtime: "Future[Runtime] | Future[ManyRuntimes]",
        default: Experiment,
        hand: "ModelsAtHand | None" = None,
        record: Record | None = None,
    ) -> None:
        self._runtime = runtime
        self.default = default
        self.hand = hand
        self._record = record  # what a new page shows in place of the default

    @property
    def runtime(self) -> "Runtime | ManyRuntimes":
        """The runtime. Raises `Refused` while the program loads its first model: what is pressed does not wait."""
        if not self.ready:
            raise Refused(words("page").text("loading"))
        return self._runtime.result()

    @property
    def ready(self) -> bool:
        """False while the program loads its first model."""
        return self._runtime.done()

    def open(self, session_id: str, language: str = DEFAULT, link: str = "") -> Visit:
        """A new page, once a model is here: the default experiment waits, prefilled, for its first Step; or a record.

        A link waits as it is; one that cannot be opened leaves the default, and the notice says why.
        """
        self._runtime.result()
        visit = Visit(session_id, language)
        if link and self.opened(visit, link):
            return visit
        refused = visit.notice
        with telling(self, visit):
            if self._record:
                self.play(visit, self._record)
            self.reopen(visit)
        visit.notice = refused or visit.notice
        return visit

    def view(self, visit: Visit) -> View:
        """What the page may show: the newest trace, the cursor, and a door to the probes."""
        if visit.playing:
            return self.played(visit, visit.playing)
        try:
            trace = self.runtime.trace(visit.session_id) if visit.session_id else None
            branches = self.runtime.branches(visit.session_id) if visit.session_id else ()
        except SessionGone:
            trace, branches = None, ()
        facts = self.runtime.facts_of(visit.session_id)
        land(visit, trace)
        return View(
            facts=facts,
            trace=trace,
            cursor=replace(visit.cursor.within(facts), turn=max(trace.turns - 1, 0) if trace else 0),
            probe=partial(self._probe, visit),
            catalog=self.runtime.catalog.models,
            results=visit.results,
            branches=branches,
            grid=visit.grid,
        )

    @taken
    def step(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        if self.walks(visit, message, form):
            visit.look_at(position=None)
            visit.playing.go(1)
            return
        self._go_on(visit, message, form)
        self.runtime.step(visit.session_id)

    def run(self, visit: Visit, message: str, form: dict[str, Any]) -> Iterator[None]:
        """Go on to the end of the turn; yields after each token."""
        with telling(self, visit):
            if self.walks(visit, message, form):
                visit.look_at(position=None)
                yield from self.walk(visit, visit.playing)
                return
            self._go_on(visit, message, form)
            for _ in self.runtime.run(visit.session_id):
                yield

    @told
    def stop(self, visit: Visit) -> None:
        visit.keeping = False
        if visit.playing:
            visit.playing.halted = True
            return
        self.runtime.stop(visit.session_id)

    @told
    def back(self, visit: Visit) -> None:
        if visit.playing:
            visit.playing.go(-1)
        else:
            self.runtime.back(visit.session_id)
        self._forget(visit)

    @taken
    def new(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """A new conversation with what is typed; with nothing typed, the first message again."""
        text = message if message.strip() else first_question(self._trace(visit).experiment)
        visit.leave_grid()
        self._start(visit, self._experiment(visit, form, [{"role": "user", "content": text}]))

    @told
    def select(self, visit: Visit, key: dict[str, Any], order: int = 0) -> None:
        """A click in any widget: a position moves the cursor, a token is taken instead at the selected step."""
        token_id = key.get("token_id")
        if type(token_id) is int or type(key.get("cell")) is int:
            live_only(visit)
        if type(token_id) is int:  # the key comes from the browser: True and 3.0 are no ids
            step = self.view(visit).step
            if step is None:
                raise Refused(words("page").text("choose_step_first"))
            self.runtime.force(visit.session_id, step.step, token_id)
            self._forget(visit)
            self.runtime.step(visit.session_id)
            return
        if type(key.get("cell")) is int:
            self.choose_cell(visit, key["cell"])
            return
        visit.choose(chosen(self.view(visit), key), order)

    @told
    def move(self, visit: Visit, by: int) -> None:
        """The arrow keys: one token on or back; a new token where there is none further on."""
        if visit.move(by, positions(self.view(visit)) - 1):
            return
        visit.look_at(position=None)
        if visit.playing:
            visit.playing.go(1)
            return
        if self._ended(self._trace(visit)):
            raise Refused(words("page").text("nothing_to_do"))
        self.runtime.step(visit.session_id)

    @told
    def look_up(self, visit: Visit, text: str, field: str = "query") -> None:
        visit.look_at(**{field: text[:LONGEST_QUERY]})

    @told
    def ask(self, visit: Visit, probe: str) -> None:
        """A check that costs model time, run because the person pressed its button."""
        results = visit.results  # a run that begins meanwhile has others
        if probe == "without_template":
            live_only(visit)
            asked = self.runtime.parse(as_raw_prompt(self._trace(visit), self.view(visit).cursor.turn))
            results[probe] = self.runtime.complete(asked)
            return
        if probe == "policies":
            results[probe] = every_way(partial(self._probe, visit))
            return
        view = self.view(visit)
        if probe == "take_branch":
            self.take(visit, compared(view))
            return
        if probe == "chances":
            self.cross(visit, compared(view))
            return
        self._probe(visit, probe, **about(probe, view))

    def reopen(self, visit: Visit) -> None:
        """A session for the visit, on the default experiment."""
        visit.session_id = self.runtime.open(visit.session_id or None)
        if visit.playing:  # what is shown needs no session
            return
        visit.leave_grid()
        self._start(visit, self.default)

    def close(self, session_id: str) -> None:
        self._runtime.result().close(session_id)

    # How it is done.

    def _trace(self, visit: Visit) -> Trace:
        if visit.playing:
            shown: Trace = visit.playing.trace
            return shown
        trace = self.runtime.trace(visit.session_id)
        if trace is None:
            raise SessionGone
        return trace

    def _start(self, visit: Visit, experiment: Experiment, *, branch: bool = False, prepare: bool = True) -> None:
        """Begin anew; with `branch` what was there is kept as one. Nothing is computed unless it is to `prepare`."""
        self.runtime.start(visit.session_id, experiment, branch=branch)
        visit.editing = visit.playing = visit.link = None
        visit.looked = {}
        self._forget(visit)
        if prepare:
            self.runtime.prepare(visit.session_id)

    def _probe(self, visit: Visit, name: str, *, branch: int | None = None, **arguments: Any) -> Any:
        """A probe of the visit's run, or of a branch; what was found is kept until the run goes on or changes."""
        settled = name in OF_A_STEP_MADE
        key = (name, branch, None if settled else len(self._trace(visit).events), *sorted(arguments.items()))
        results, probed, looked = visit.results, visit.probed, visit.looked  # a run that begins meanwhile has others
        try:
            found = probed[key]
        except KeyError:
            found = self._noted(visit, looked, name, branch, arguments)
            while len(probed) >= REMEMBERED:
                probed.pop(next(iter(probed)), None)
            probed[key] = found
        # The newest answer of each probe is there for whoever else may show it: the rail, the checks.
        if branch is None:
            results[name] = found
            if not visit.keeping:
                self.remember(visit, looked, name, arguments, found)
        return found

    def _found(self, visit: Visit, name: str, branch: int | None, arguments: dict[str, Any]) -> Any:
        if visit.playing:
            return self.recall(visit, visit.playing, name, **arguments)
        if branch is None:
            return self.runtime.probe(visit.session_id, name, **arguments)
        return self.runtime.probe_branch(visit.session_id, branch, name, **arguments)

    def _forget(self, visit: Visit) -> None:
        """The run changed: the cursor follows the newest token again, and results of the old run go."""
        visit.look_at(position=None)
        visit.results, visit.probed = {}, {}

    def _go_on(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """Make the run ready for its next token."""
        if visit.playing:
            self.leave(visit, message, form)
            return
        visit.look_at(position=None)
        found = self.next_run(visit, message, form)
        if found.anew:
            self._start(visit, found.experiment, branch=True)
        elif found.says:
            self.runtime.say(visit.session_id, message)
            self._forget(visit)
        elif not message.strip() and self._ended(self._trace(visit)):
            raise Refused(words("page").text("nothing_to_do"))

    def next_run(self, visit: Visit, message: str, form: dict[str, Any]) -> NextRun:
        """What Step and Run go on with."""
        self._trace(visit)  # raises where there is none
        return next_run(self.view(visit), visit.editing, message, form, partial(self._experiment, visit))

    def _ended(self, trace: Trace) -> bool:
        """True when no further token can come: the newest turn has stopped for good."""
        stopped = trace.stopped(trace.turns - 1)
        going = trace.calling or waiting(trace) is not None
        return stopped is not None and stopped.reason != "cancelled" and not going

    def _experiment(self, visit: Visit, form: dict[str, Any], messages: Sequence[dict[str, str]]) -> Experiment:
        model = self.runtime.facts_of(visit.session_id).model_id
        shown = self._trace(visit).experiment
        return self.runtime.parse(compose(form, shown=shown, model=model, messages=messages))
