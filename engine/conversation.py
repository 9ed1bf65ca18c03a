"""Turns of a conversation: render, reuse the cache, prefill, decode, and again; one piece of work at a time."""

from dataclasses import replace
from typing import Any, Self

import torch

from engine import kv_cache
from engine.context.fit import fit
from engine.decode import Turn
from engine.experiment import Experiment, ExperimentError, Forced, parse_experiment
from engine.limits import check_id, check_prompt
from engine.model import LoadedModel
from engine.new_turn import new_turn
from engine.prefix_registry import VisitorPrefixes
from engine.reuse import reuse
from engine.said import Sentence, said
from engine.tools.registry import tools_named
from engine.tools.rounds import would_call
from engine.tools.runner import run_calls
from engine.tools.tool import Setting
from engine.trace import Event, Rendered, Stepped, Stopped, ToolCalled, Trace
from engine.versions import versions

#: Ends of a turn after which another token may still be chosen.
_OPEN = frozenset({"cancelled", "error"})


class Conversation:
    """A run of an experiment that can be stepped, taken back, steered and cancelled.

    Everything the model does is in `trace`, which is replaced and never changed. Errors that a person can mend become
    `Stopped(reason="error")` and the cache goes back. All methods belong on the one thread that calls the model.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        experiment: Experiment,
        *,
        cache_budget: int | None = None,
        prefixes: VisitorPrefixes | None = None,
    ) -> None:
        """No model work. `cache_budget` limits the bytes of the KV cache that a turn may come to need.

        `prefixes` are system prompts computed before, by this conversation or another.
        """
        self.loaded = loaded
        self.trace = Trace(experiment, loaded.facts, versions())
        self.turn: Turn | None = None  # the current one; None before the first, and where one could not begin
        self.captured: dict[Any, Any] = {}  # what probes keep between two questions; it goes with the cache
        self._index = -1  # of the newest turn that was begun
        self._callers: list[Turn] = []  # the turns that ended in calls since the newest user message
        self.cache_budget = cache_budget
        self._prefixes = prefixes
        self._generator = torch.Generator(loaded.device).manual_seed(experiment.sampling.seed)

    @classmethod
    def resumed(cls, loaded: LoadedModel, trace: Trace, *, cache_budget: int | None = None) -> Self:
        """A conversation that stands where `trace` ends. No forward is run: the next piece of work fills the cache."""
        made = cls(loaded, trace.experiment, cache_budget=cache_budget)
        made.trace = trace
        for index in range(trace.turns):
            made._take_up(index)
        return made

    @property
    def experiment(self) -> Experiment:
        return self.trace.experiment

    @property
    def finished(self) -> bool:
        """True when the last turn of the experiment has stopped, or an error has stopped the whole."""
        stopped = self._stopped
        if stopped is None or stopped.reason == "error":
            return stopped is not None
        return self.trace.answered(self._index + 1) > len(self.experiment.follow_ups)

    @property
    def cache_bytes(self) -> int:
        return self.turn.kv_bytes if self.turn else 0

    @property
    def random_state(self) -> torch.Tensor:
        """The state of the run's generator before its next draw."""
        return self._generator.get_state()

    def advance(self) -> tuple[Event, ...]:
        """The next piece of work, at most one forward; () when nothing is left to do.

        A turn's first piece gives (Rendered, Prefilled), each later one (Stepped,) or (Stepped, Stopped). Where it
        stopped at calls of tools, the next piece runs them, (ToolCalled, …), and the one after begins the turn that
        reads the results. After `cancel` the turn goes on where it was.
        """
        if not self._opened():
            return ()
        events: list[Event] = []
        failure: tuple[Sentence, str] | None = None
        try:
            self._work(events)
        except ExperimentError as error:
            failure = (error.message, error.path)
        except Exception as error:
            if not kv_cache.is_out_of_memory(error):
                # A fault of the program: it goes up, and the run says that it ended.
                self._fail(said("program_failed", error=type(error).__name__), "", events)
                raise
            if self._prefixes is not None:
                self._prefixes.give_back()
            failure = (said("memory_ran_out"), "")
        if failure is not None:
            # Outside the except blocks: a traceback would keep the failed forward's tensors alive.
            self._fail(*failure, events)
        else:
            self.trace = replace(self.trace, events=(*self.trace.events, *events))
        return tuple(events)

    def back(self) -> bool:
        """Take back the newest token of the current turn, and its end; False when the turn has no token.

        From the start of a turn that reads results of tools, that is the last token of the call, and the results go.
        """
        if self.turn is None or not (self.turn.answer or self._back_to_call()):
            return False
        while not isinstance(self.trace.events[-1], Stepped):
            self._drop_last_event()
        self._drop_last_event()
        self.turn.back()
        return True

    def force(self, step: int, token_id: int) -> None:
        """Go back to `step` of the current turn; the next `advance` takes `token_id` there.

        Choices at later steps of the turn belonged to the branch that is left, and go. Choosing what the draw gave
        anyway takes a former choice back. Raises `ExperimentError` for a step that is not reached or an unknown id.
        """
        made = len(self.turn.answer) if self.turn else 0
        ended = self._stopped is not None and self._stopped.reason not in _OPEN
        if self.turn is None or not 0 <= step <= made - ended:
            raise ExperimentError("step", said("step_not_there", made=made, ended=said("and_ended") if ended else ""))
        check_id(token_id, self.loaded.facts, "token_id")
        steps = self.trace.steps(self.turn.index)
        while len(self.turn.answer) > step:
            self.back()
        if self._stopped is not None:
            self._drop_last_event()
        turn = self._index
        kept = [item for item in self.experiment.forced if (item.turn, item.step) < (turn, step) or item.turn > turn]
        if step == len(steps) or steps[step].natural_id != token_id:
            kept.append(Forced(turn=turn, step=step, token_id=token_id))
        self._change(forced=[item.model_dump() for item in kept])

    def say(self, text: str) -> None:
        """Add a user turn, which the next `advance` begins. Raises `ExperimentError` before the last one has stopped.

        A turn that was cancelled first ends with a forced end-of-sequence token, so that the experiment alone gives
        the same trace. Calls that it holds are run, and the turn that would read their results ends at once.
        """
        if not self.finished:
            raise ExperimentError("follow_ups", said("turn_not_ended"))
        stopped = self._stopped
        if self.turn is None or (stopped is not None and stopped.reason == "error"):
            raise ExperimentError("follow_ups", said("ended_with_error"))
        cancelled, calling = stopped is not None and stopped.reason == "cancelled", self._calling
        if cancelled and (not self.loaded.facts.eos_ids or self.experiment.mistake == "eos_not_watched"):
            raise ExperimentError("follow_ups", said("cancelled_needs_eos"))
        self._change(follow_ups=[*self.experiment.follow_ups, text])
        if cancelled and (calling or would_call(self.trace, self._index)):
            self._force_nothing_after_calls()
        if cancelled and not calling:
            self.force(len(self.turn.answer), self.loaded.facts.eos_ids[0])

    def cancel(self, **evidence: object) -> None:
        """Stop a running turn where it is; the next `advance` goes on. `evidence` says what else decided it."""
        if self.turn is None or (self._stopped is not None and self._stopped.reason != "tool_call"):
            return
        evidence = {"step": len(self.turn.answer)} | evidence
        stopped = Stopped(self._index, "cancelled", evidence, "" if self._calling else self.turn.held_text())
        self.trace = replace(self.trace, events=(*self.trace.events, stopped))

    def release(self) -> None:
        """Give the cache back; the next `advance` builds it anew in one forward over all ids."""
        self.captured.clear()
        if self.turn is not None:
            self.turn.cache = None

    def absorb(self, events: tuple[Event, ...]) -> None:
        """Stand after `events`, a piece of work that was done elsewhere. No forward is run."""
        self.trace = replace(self.trace, events=(*self.trace.events, *events))
        for event in events:
            if isinstance(event, Rendered):
                self._take_up(event.turn)
            elif isinstance(event, Stepped) and self.turn is not None:
                self.turn.replay([event])

    # How it is done.

    def _take_up(self, index: int) -> None:
        """Go over to turn `index` of the trace and stand where its steps end, without its cache."""
        trace = self.trace
        self._callers = [*self._callers, self.turn] if self.turn and self._calling else []
        self._index, self.turn = index, None
        rendered = trace.rendered(index)
        if rendered is None or trace.prefilled(index) is None:  # it could not begin
            return
        sliding = trace.experiment.context.strategy == "sliding_window"
        window = fit(self.loaded, trace, index).window if sliding else None
        window = window.begun(trace, index, rendered.reused) if window else None
        ids = rendered.token_ids.tolist()
        self.turn = new_turn(self.loaded, trace, index, ids, None, self._generator, window)
        self.turn.replay(trace.steps(index))

    def _opened(self) -> bool:
        """Take a cancelled end back, so that the turn goes on; False where nothing is left to do."""
        if self._stopped is None or self._stopped.reason != "cancelled":
            return not self.finished
        self._drop_last_event()
        return True

    @property
    def _stopped(self) -> Stopped | None:
        """The end of the current turn: the newest event but for what its calls gave."""
        newest = next((event for event in reversed(self.trace.events) if not isinstance(event, ToolCalled)), None)
        return newest if isinstance(newest, Stopped) else None

    @property
    def _calling(self) -> bool:
        """True where the current turn ended in calls, be they run or not."""
        return any(stopped.reason == "tool_call" for stopped in self.trace.of(Stopped, self._index))

    def _fail(self, message: Sentence, field: str, events: list[Event]) -> None:
        """End the run with an error; the cache goes back."""
        self.release()
        text = self.turn.held_text() if self.turn else ""
        # Not "path": Gradio's client takes an object with such a key for a file and asks for it.
        events.append(Stopped(self._index, "error", {"message": message, "field": field}, text))
        self.trace = replace(self.trace, events=(*self.trace.events, *events))

    def _work(self, events: list[Event]) -> None:
        """Do the next piece and put what happened into `events`, as far as it gets."""
        if self._calling and isinstance(self.trace.events[-1], Stopped):
            asked, setting = tools_named(self.experiment.tools), Setting(self.experiment.clock)
            events += run_calls(self.trace.answer(self._index), asked, setting, self._index)
        elif self._index < 0 or self._stopped is not None:
            self._begin_turn(events)
        elif self.turn is not None:
            events += self.turn.step(self.experiment.forced_token(self._index, len(self.turn.answer)))

    def _begin_turn(self, events: list[Event]) -> None:
        """Render the history, drop what does not fit, keep what the cache has of the rest, compute what it lacks."""
        former, self.turn = self.turn, None
        self._callers = [*self._callers, former] if former and self._calling else []
        self._index += 1
        fed = fit(self.loaded, self.trace, self._index, cache_budget=self.cache_budget)
        if fed.refusal is not None:
            events.append(fed.rendered)
            raise fed.refusal
        prompt_ids = fed.rendered.token_ids.tolist()
        # Keys in a window carry what has left: system prompts are kept without one, and of no use in it.
        prefixes = None if fed.window else self._prefixes
        if former is not None and self.experiment.mistake == "mask_not_extended":
            former.cache = None  # its answer was computed under a mask that this turn's prompt does not have
        found = reuse(former, fed.rendered, fed.window, prefixes)
        events += fed.events(found)
        window = fed.window.begun(self.trace, self._index, found.reused) if fed.window else None
        offset = window.offset if window else 0
        check_prompt(self.experiment, self.loaded.facts, len(prompt_ids), self.cache_budget, offset=offset)
        self.turn = new_turn(self.loaded, self.trace, self._index, prompt_ids, found.cache, self._generator, window)
        events.append(self.turn.prefill())
        if prefixes is not None:
            prefixes.keep(fed.rendered, self.turn.cache)

    def _back_to_call(self) -> bool:
        """Leave a turn without tokens for the one whose calls it reads the results of; its cache is made anew."""
        if not self._callers:
            return False
        *self._callers, self.turn = self._callers
        self.turn.cache, self._index = None, self.turn.index
        while self.trace.events[-1].turn > self._index:
            self._drop_last_event()
        return True

    def _force_nothing_after_calls(self) -> None:
        """Let the turn that would read the results of the current one's calls end at once."""
        reading = self._index + 1
        kept = [item for item in self.experiment.forced if item.turn != reading]
        kept.append(Forced(turn=reading, step=0, token_id=self.loaded.facts.eos_ids[0]))
        self._change(forced=[item.model_dump() for item in kept])

    def _drop_last_event(self) -> None:
        self.trace = replace(self.trace, events=self.trace.events[:-1])

    def _change(self, **fields: object) -> None:
        """Change fields of the experiment, validated as if the whole had come from outside."""
        data = self.experiment.model_dump() | fields
        changed = parse_experiment(data, models=[self.experiment.model], tools=self.experiment.tools)
        self.trace = replace(self.trace, experiment=changed)
