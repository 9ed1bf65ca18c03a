"""The decode loop of one turn, by hand: prefill once, then one token at a time, each way back open."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from transformers import Cache

from engine import kv_cache
from engine.context.window import Window, feed
from engine.experiment import Experiment, Grammar
from engine.limits import check_id, context_limit
from engine.model import LoadedModel
from engine.stages.detokenizer import Detokenizer, Piece, State
from engine.stages.forward import Forwarded, forward
from engine.stages.inputs import Inputs, make_inputs
from engine.stages.processors import build_chain
from engine.stages.sampling import draw, greedy
from engine.stages.snapshots import NoCandidate, Snapshot
from engine.stages.step_event import step_event
from engine.stages.stopping import StopRule, first_of
from engine.stages.vocabulary import vocabulary
from engine.tools.rounds import Round, mark_ids
from engine.trace import Draw, Event, Prefilled, Shape, Stepped, Stopped


@dataclass(frozen=True, eq=False)
class Computed:
    """The logits of the next token [vocab] float32, and what the forward that gave them was fed."""

    logits: torch.Tensor
    shapes: dict[str, Shape]
    first: int  # first position computed
    last: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Before:
    """What a step changes beside ids and cache, as it was before it."""

    random: torch.Tensor  # state of the generator
    text: State


class Turn:
    """One turn in progress. The last sampled token is in `answer` but not in the cache: nobody has fed it yet.

    `cache` holds the first positions of the prompt already, those a former turn left; None stands for a cache given
    back, which the next forward builds anew. The generator belongs to the run and is drawn from in turn.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        experiment: Experiment,
        index: int,
        prompt_ids: Sequence[int],
        cache: Cache | None,
        generator: torch.Generator,
        window: Window | None = None,
        *,
        calls: Round | None = None,
        forcing: Grammar | None = None,
    ) -> None:
        """Build the chain; `calls` is the round of tool calls that the turn is, `forcing` the grammar of a forced one.

        Raises `ExperimentError` for a grammar that does not compile or ids out of range.
        """
        self.index = index
        self.prompt_ids = tuple(prompt_ids)
        self.answer: list[int] = []
        self.cache = cache
        self.window = window
        self.gone = 0  # tokens of this context that have left the window
        self._loaded = loaded
        self._experiment = experiment
        self._generator = generator
        self._before: list[Before] = []
        self._own: Computed | None = None  # of the prompt's last row: the first step's logits
        self._context = torch.tensor([self.prompt_ids], dtype=torch.long, device=loaded.device)  # [1, prompt + answer]
        self._vocabulary = vocabulary(loaded.tokenizer)
        self._calls = calls
        self._texts: list[str] = []  # newly shown, one a token
        self._detokenizer = Detokenizer(
            loaded.tokenizer, experiment.stop.stop_strings, shown=mark_ids(self._vocabulary) if calls else ()
        )
        self.chain = build_chain(
            experiment, loaded.facts, loaded.tokenizer, prompt_ids=prompt_ids, device=loaded.device, forcing=forcing
        )
        self._rule = StopRule(
            prompt_tokens=len(self.prompt_ids) + (window.offset if window else 0),
            max_new_tokens=experiment.stop.max_new_tokens,
            context=context_limit(experiment, loaded.facts),
            eos_ids=() if experiment.mistake == "eos_not_watched" else loaded.facts.eos_ids,
        )

    def prefill(self) -> Prefilled:
        """Compute the prompt's positions that the cache does not hold, in one forward."""
        self._own = computed = self._compute()
        return Prefilled(
            turn=self.index,
            first=computed.first,
            last=computed.last,
            shapes=computed.shapes,
            kv_tokens=self.kv_tokens,
            kv_bytes=self.kv_bytes,
            seconds=computed.seconds,
        )

    def step(self, forced: int | None = None, computed: Computed | None = None) -> tuple[Event, ...]:
        """Choose the next token; `forced` overrides the draw, which is made all the same.

        `computed` are the next token's logits where somebody else has computed them.

        Gives (Stepped,), (Stepped, Stopped), or (Stopped,) where the chain left nothing to choose.
        """
        computed = computed or self._next_logits()
        started = time.perf_counter()
        before = self._now()
        try:
            snapshots = self.chain.run(self._context, computed.logits)
        except NoCandidate as error:
            evidence = {"stage": error.stage, "step": len(self.answer)}
            return (Stopped(self.index, "no_candidate", evidence, self.held_text()),)
        token_id, drawn = self._choose(snapshots, forced)
        stepped = step_event(
            snapshots,
            self._vocabulary,
            self._loaded.facts.eos_ids,
            turn=self.index,
            step=len(self.answer),
            position=len(self.prompt_ids) + len(self.answer),
            token_id=token_id,
            drawn=drawn,
            forced=forced is not None,
            shapes=computed.shapes,
            kv_tokens=self.kv_tokens,
            kv_bytes=self.kv_bytes,
            seconds=computed.seconds,
        )
        self._before.append(before)
        piece = self._take(token_id)
        stepped = replace(
            stepped,
            text=piece.text,
            held_bytes=piece.held_bytes,
            overhead_seconds=time.perf_counter() - started,
        )
        grammar = self.chain.grammar
        held = "" if piece.stop else self.held_text()
        holds = self._rule.reached(
            token_id=token_id,
            new_tokens=len(self.answer),
            match=piece.stop,
            grammar_ended=grammar is not None and grammar.ended(self.answer),
        )
        called = self._calls.ending("".join(self._texts) + held, holds) if self._calls else None
        verdict = called or first_of(holds)
        if verdict is None:
            return (stepped,)
        reason, evidence = verdict
        return stepped, Stopped(self.index, reason, evidence, held)

    def back(self) -> None:
        """Take the newest token back: text, generator and cache are as they were before its step.

        The token before it is fed anew by the next step, so that the same shapes give the same bits.
        """
        before = self._before.pop()
        self._generator.set_state(before.random)
        self._detokenizer.restore(before.text)
        self._texts.pop()
        self.answer.pop()
        self._context = self._context[:, :-1]
        # What has left a window does not come back: the next forward builds what stood there then.
        if self.cache is not None and (self.gone or not kv_cache.cut_back(self.cache, self.fed)):
            self.cache = None
        if not self.answer and self._own is None:  # a turn that was replayed: its first logits were never computed here
            self.cache = None

    def replay(self, steps: Sequence[Stepped]) -> None:
        """Stand where these steps of the same turn ended: ids, text and generator as after them. No forward is run."""
        for step in steps:
            self._before.append(self._now())
            if step.draw is not None:
                # The very numbers that the draw's race took.
                torch.empty((1, step.shapes["logits"][-1]), device=self._loaded.device).exponential_(
                    1, generator=self._generator
                )
            self._take(step.token_id)

    @property
    def first_logits(self) -> torch.Tensor | None:
        """Logits [vocab] of the first step, as the prefill gave them; None before it."""
        return self._own.logits if self._own else None

    def random_state(self, step: int) -> torch.Tensor:
        """State of the run's generator before the draw of a step that was taken."""
        return self._before[step].random

    def held_text(self) -> str:
        """What is held back now, as it would be shown if the turn ended here."""
        state = self._detokenizer.snapshot()
        text = self._detokenizer.flush()
        self._detokenizer.restore(state)
        return text

    @property
    def kv_tokens(self) -> int:
        return 0 if self.cache is None else kv_cache.tokens(self.cache)

    @property
    def kv_bytes(self) -> int:
        return 0 if self.cache is None else kv_cache.measured_bytes(self.cache)

    @property
    def cached_ids(self) -> tuple[int, ...]:
        """The ids whose positions the cache holds."""
        return (*self.prompt_ids, *self.answer)[self.gone : self.gone + self.kv_tokens]

    @property
    def fed(self) -> int:
        """Tokens of the context that were fed: all but the newest of the answer."""
        return len(self.prompt_ids) + max(0, len(self.answer) - 1)

    def refill(self) -> None:
        """Build the cache of a window anew, as it was when it was given back."""
        if self.window is not None:
            self._compute_windowed(self.window, (*self.prompt_ids, *self.answer)[: self.fed])

    def _now(self) -> Before:
        """What a step changes. Where none draws, all share one state of the generator: 5 kB a token otherwise."""
        shared = self._experiment.sampling.greedy and self._before
        random = self._before[-1].random if shared else self._generator.get_state()
        return Before(random, self._detokenizer.snapshot())

    def _compute(self) -> Computed:
        """One forward over every position that the cache lacks: the whole prompt, or the one newest token."""
        ids = (*self.prompt_ids, *self.answer)
        if self.window is not None:
            return self._compute_windowed(self.window, ids)
        mistake = self._experiment.mistake if self.answer else None
        if mistake == "history_reencoded":
            self.cache = None
        elif self.cache is None:
            self.cache = kv_cache.new_cache(self._loaded.model.config)
        past = self.kv_tokens
        inputs = make_inputs(
            ids[past:],
            past=past,
            device=self._loaded.device,
            mask_length=len(self.prompt_ids) if mistake == "mask_not_extended" else None,
        )
        result = forward(self._loaded.model, inputs, self.cache)
        return self._computed(result, inputs, past)

    def _compute_windowed(self, window: Window, ids: tuple[int, ...]) -> Computed:
        """The same in a sliding window, whose oldest tokens have left."""
        fed = feed(window, ids, len(self.prompt_ids), self.cache, self.gone, self._loaded)
        self.cache, self.gone = fed.cache, fed.gone
        result = forward(self._loaded.model, fed.inputs, fed.cache)
        kv_cache.evict(fed.cache, fed.evict)
        return self._computed(result, fed.inputs, fed.past)

    def _computed(self, result: Forwarded, inputs: Inputs, first: int) -> Computed:
        shapes = inputs.shapes | {"logits": result.shape}
        if self.cache is not None:
            shapes |= kv_cache.first_shapes(self.cache)
        last = len(self.prompt_ids) + len(self.answer) - 1
        return Computed(result.logits, shapes, first, last, result.seconds)

    def _next_logits(self) -> Computed:
        if self.answer or self._own is None:
            return self._compute()
        if self.cache is None:  # given back since the prefill: filled again, and the draw stays what it would have been
            return replace(self._own, seconds=self._compute().seconds)
        return replace(self._own, seconds=0.0)

    def _choose(self, snapshots: Sequence[Snapshot], forced: int | None) -> tuple[int, Draw | None]:
        if forced is not None:
            path = f"forced (turn {self.index}, step {len(self.answer)})"
            check_id(forced, self._loaded.facts, path)
            grammar = self.chain.grammar
            if grammar is not None:
                grammar.check(self.answer, forced, path)
        final = snapshots[-1]
        drawn = None if self._experiment.sampling.greedy else draw(final.logits, self._generator, final.left)
        if forced is not None:
            return forced, drawn
        return (drawn.drawn_id if drawn else greedy(final.logits)), drawn

    def _take(self, token_id: int) -> Piece:
        """The token is part of the answer from now on; gives the text that it shows."""
        self.answer.append(token_id)
        self._context = torch.cat([self._context, self._context.new_tensor([[token_id]])], dim=-1)
        piece = self._detokenizer.push(token_id)
        self._texts.append(piece.text)
        return piece
