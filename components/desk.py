"""What a person does on the page, carried to the runtime; what the runtime refuses comes back as a notice."""

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from components.compose import compose, form_part, transcript
from components.context.ways import every_way
from components.copy import words
from components.panel import FIGURES, OPERATIONS, View
from components.visit import Visit
from engine.experiment import Experiment, ExperimentError
from engine.refusals import Refused, SessionGone
from engine.trace import Trace

if TYPE_CHECKING:
    from engine.runtime import Runtime

log = logging.getLogger(__name__)

#: Results of probes that are kept for a visit.
REMEMBERED = 16
#: New tokens of the answer that is made for comparison, without a chat template.
RAW_TOKENS = 40

#: Probes that are asked about the selected step, or about the selected head; the others look at the whole turn.
OF_ONE_STEP = frozenset({"uncached"})
OF_ONE_HEAD = frozenset({"attention_matrix"})
OF_THE_CONTEXT = frozenset({"lens_map", "norms", "padding"})

#: Positions of a lens map, up to the selected one.
MAP_POSITIONS = 32


def told(intent: Callable[..., None]) -> Callable[..., None]:
    """An intent whose refusal becomes the visit's notice: the page shows it, and the session lives on."""

    @wraps(intent)
    def tell(desk: "Desk", visit: Visit, *arguments: Any, **named: Any) -> None:
        with desk.telling(visit):
            intent(desk, visit, *arguments, **named)

    return tell


class Desk:
    """The intents of `components.page.Intents` over one runtime; the visit says whose session is meant."""

    def __init__(self, runtime: "Future[Runtime]", default: Experiment) -> None:
        self._runtime = runtime
        self.default = default

    @property
    def runtime(self) -> "Runtime":
        """The runtime; waits for the model that the program is loading."""
        return self._runtime.result()

    @property
    def ready(self) -> bool:
        """False while the model is being loaded."""
        return self._runtime.done()

    def open(self, session_id: str) -> Visit:
        """A new page: the default experiment, rendered and prefilled, waits for the first Step."""
        visit = Visit(session_id)
        with self.telling(visit):
            self._reopen(visit)
        return visit

    def view(self, visit: Visit) -> View:
        """What the page may show: the newest trace, the cursor, and a door to the probes."""
        try:
            trace = self.runtime.trace(visit.session_id) if visit.session_id else None
        except SessionGone:
            trace = None
        return View(
            facts=self.runtime.facts,
            trace=trace,
            cursor=replace(visit.cursor, turn=max(trace.turns - 1, 0) if trace else 0),
            probe=partial(self._probe, visit),
            catalog=self.runtime.catalog.models,
            results=visit.results,
        )

    @told
    def step(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        self._go_on(visit, message, form)
        self.runtime.step(visit.session_id)

    def run(self, visit: Visit, message: str, form: dict[str, Any]) -> Iterator[None]:
        """Go on to the end of the turn; yields after each token."""
        with self.telling(visit):
            self._go_on(visit, message, form)
            for _ in self.runtime.run(visit.session_id):
                yield

    @told
    def stop(self, visit: Visit) -> None:
        self.runtime.stop(visit.session_id)

    @told
    def back(self, visit: Visit) -> None:
        self.runtime.back(visit.session_id)
        self._forget(visit)

    @told
    def new(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """A new conversation with what is typed; with nothing typed, the first message again."""
        first = self._trace(visit).experiment
        asked = [message.content for message in first.messages or () if message.role == "user"]
        text = message if message.strip() else (asked[0] if asked else first.prompt or "")
        self._start(visit, self._experiment(form, [{"role": "user", "content": text}]))

    @told
    def select(self, visit: Visit, key: dict[str, Any]) -> None:
        """A click in any widget: a position moves the cursor, a token is taken instead at the selected step."""
        token_id = key.get("token_id")
        if type(token_id) is int:  # the key comes from the browser: True and 3.0 are no ids
            step = self.view(visit).step
            if step is None:
                raise Refused(words("page").text("choose_step_first"))
            self.runtime.force(visit.session_id, step.step, token_id)
            self._forget(visit)
            self.runtime.step(visit.session_id)
            return
        visit.cursor = replace(visit.cursor, **self._chosen(visit, key))

    @told
    def move(self, visit: Visit, by: int) -> None:
        """The arrow keys: one token on or back; a new token where there is none further on."""
        last = self._positions(visit) - 1
        here = last if visit.cursor.position is None else visit.cursor.position
        if here + by <= last:
            visit.cursor = replace(visit.cursor, position=max(here + by, 0))
            return
        visit.cursor = replace(visit.cursor, position=None)
        if self._ended(self._trace(visit)):
            raise Refused(words("page").text("nothing_to_do"))
        self.runtime.step(visit.session_id)

    @told
    def look_up(self, visit: Visit, text: str, field: str = "query") -> None:
        visit.cursor = replace(visit.cursor, **dict[str, Any]({field: text[:200]}))

    @told
    def ask(self, visit: Visit, probe: str) -> None:
        """A check that costs model time, run because the person pressed its button."""
        if probe == "without_template":
            visit.results[probe] = self.runtime.complete(self._raw(visit))
            return
        if probe == "policies":
            visit.results[probe] = every_way(partial(self._probe, visit))
            return
        self._probe(visit, probe, **self._about(probe, self.view(visit)))

    def close(self, session_id: str) -> None:
        self.runtime.close(session_id)

    @contextmanager
    def telling(self, visit: Visit) -> Iterator[None]:
        """Turn what goes wrong inside into the visit's notice; a session that was put away is opened anew."""
        visit.notice = ""
        try:
            yield
        except SessionGone:
            visit.notice = words("page").text("session_gone")
            try:
                self._reopen(visit)
            except Refused as refused:  # no place is free, or the page has closed meanwhile
                visit.notice = str(refused)
        except (ExperimentError, Refused) as refused:
            visit.notice = str(refused)
        except Exception as error:  # the person must be told, whatever it was; the log has the rest
            log.exception("an intent failed")
            visit.notice = words("page").text("crashed", kind=type(error).__name__)

    # How it is done.

    def _about(self, probe: str, view: View) -> dict[str, Any]:
        """What a probe that is run at the press of a button is asked about."""
        if probe in OF_ONE_HEAD:
            return {"turn": view.cursor.turn, "layer": view.cursor.layer, "head": view.cursor.head}
        here = view.fed_position
        if probe == "lens_map" and here is not None:
            return {"first": max(0, here + 1 - MAP_POSITIONS), "count": min(here + 1, MAP_POSITIONS)}
        if probe in OF_THE_CONTEXT:
            return {}
        if view.nearest_step is None:
            raise Refused(words("page").text("no_token_yet"))
        return {"step": view.nearest_step.step} if probe in OF_ONE_STEP else {}

    def _reopen(self, visit: Visit) -> None:
        visit.session_id = self.runtime.open(visit.session_id or None)
        self._start(visit, self.default)

    def _trace(self, visit: Visit) -> Trace:
        trace = self.runtime.trace(visit.session_id)
        if trace is None:
            raise SessionGone
        return trace

    def _positions(self, visit: Visit) -> int:
        """How many positions the timeline shows."""
        view = self.view(visit)
        return (len(view.rendered.token_ids) if view.rendered else 0) + len(view.steps)

    def _chosen(self, visit: Visit, key: dict[str, Any]) -> dict[str, Any]:
        """Those parts of a selection that name something there is, as fields of the cursor."""
        facts, rendered = self.runtime.facts, self.view(visit).rendered
        counts = {"position": self._positions(visit), "layer": facts.layers, "head": facts.heads}
        if isinstance(key.get("fed"), int):
            # What was fed at a position of the answer is shown with the step that came of it.
            prompt = len(rendered.token_ids) if rendered else 0
            key = key | {"position": key["fed"] + (key["fed"] >= prompt)}
        chosen = {
            name: key[name]
            for name, count in counts.items()
            if type(key.get(name)) is int and key[name] in range(count)
        }
        if key.get("figure") in FIGURES:
            chosen["figure"] = key["figure"]
        if key.get("operation") in OPERATIONS:
            chosen["operation"] = key["operation"]
        return chosen

    def _start(self, visit: Visit, experiment: Experiment) -> None:
        self.runtime.start(visit.session_id, experiment)
        self._forget(visit)
        self.runtime.prepare(visit.session_id)

    def _probe(self, visit: Visit, name: str, **arguments: Any) -> Any:
        """A probe of the visit's run; what was found is kept until the run goes on or changes."""
        key = (name, len(self._trace(visit).events), *sorted(arguments.items()))
        if key not in visit.probed:
            found = self.runtime.probe(visit.session_id, name, **arguments)
            while len(visit.probed) >= REMEMBERED:
                visit.probed.pop(next(iter(visit.probed)), None)
            visit.probed[key] = found
        # The newest answer of each probe is there for whoever else may show it: the rail, the checks.
        visit.results[name] = visit.probed[key]
        return visit.probed[key]

    def _forget(self, visit: Visit) -> None:
        """The run changed: the cursor follows the newest token again, and results of the old run go."""
        visit.cursor = replace(visit.cursor, position=None)
        visit.results.clear()
        visit.probed.clear()

    def _go_on(self, visit: Visit, message: str, form: dict[str, Any]) -> None:
        """Make the run ready for its next token: new settings start the answer again, a message opens a turn."""
        trace = self._trace(visit)
        history = transcript(trace)
        asked = self._experiment(form, history)
        changed = form_part(asked) != form_part(trace.experiment)
        said = {"role": "user", "content": message}
        stopped = trace.stopped(trace.turns - 1)
        waiting = self._waiting(trace)
        visit.cursor = replace(visit.cursor, position=None)
        if not message.strip():
            if changed:
                self._start(visit, asked)
            elif self._ended(trace):
                raise Refused(words("page").text("nothing_to_do"))
        elif asked.prompt is not None or not trace.steps(0):
            self._start(visit, self._experiment(form, [said]))
        elif stopped is None:
            raise Refused(words("page").text("answer_first"))
        elif stopped.reason == "error":
            self._start(visit, self._experiment(form, [*history[:-1], said]))
        elif changed or waiting not in (None, message):
            answer = {"role": "assistant", "content": trace.answer(trace.turns - 1)}
            self._start(visit, self._experiment(form, [*history, answer, said]))
        elif waiting is None:
            self.runtime.say(visit.session_id, message)
            self._forget(visit)

    def _ended(self, trace: Trace) -> bool:
        """True when no further token can come: the newest turn has stopped for good."""
        stopped = trace.stopped(trace.turns - 1)
        return stopped is not None and stopped.reason != "cancelled" and self._waiting(trace) is None

    @staticmethod
    def _waiting(trace: Trace) -> str | None:
        """A message that was taken while its turn has not begun: its run was refused, as too many were under way."""
        return next(iter(trace.experiment.follow_ups[trace.turns - 1 :]), None) if trace.turns else None

    def _experiment(self, form: dict[str, Any], messages: Sequence[dict[str, str]]) -> Experiment:
        return self.runtime.parse(compose(form, model=self.runtime.facts.model_id, messages=messages))

    def _raw(self, visit: Visit) -> Experiment:
        """The newest question as a raw prompt, with the same settings, and no more tokens than a glance needs."""
        trace = self._trace(visit)
        data = trace.experiment.model_dump(exclude={"messages", "follow_ups", "forced"})
        data["prompt"] = transcript(trace)[-1]["content"]
        data["stop"]["max_new_tokens"] = min(data["stop"]["max_new_tokens"], RAW_TOKENS)
        return self.runtime.parse(data)
