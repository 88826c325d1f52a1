"""The engine: owns one loaded pair and turns a request into a stream of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from engine.answer import Answer
from engine.choosing import choose_drafter
from engine.decoding.constrained import decode
from engine.decoding.controller import Controller, FixedLength
from engine.decoding.exactness import Exactness
from engine.decoding.sampling import Sampler
from engine.decoding.steps import Decoding, Policy
from engine.drafters.lookup import LookupIndex
from engine.drafters.protocol import Drafter, DraftSession, Recall
from engine.errors import Cancelled, ModelError, RequestError
from engine.events import BlockLength, Event, ExactnessProgress, Finished, Mode, PrefillProgress, Started
from engine.grammars import Grammars
from engine.info import PairInfo
from engine.learning import Learner
from engine.memory import give_back, kept_resident
from engine.prefill.attention import attention_weights
from engine.prefill.chunked import Prefilled, prefill
from engine.prefill.context import Fitted, fit_context
from engine.prefill.margin import top2_margin
from engine.prefill.scorers import choose_tokens
from engine.prefill.selection import Run, describe, runs_of
from engine.prefill.sparse import sparse_prefill
from engine.prefix.ahead import prefill_ahead
from engine.prefix.boundaries import Encode, continued_prefix, parting_places
from engine.prefix.cache import PrefixCache
from engine.prefix.recording import Recording
from engine.pressure import guarded
from engine.request import GenerationRequest, Message, SparsePrefill
from engine.targets.protocol import Cache, Target
from engine.text.chat import encode_chat
from engine.text.detokenize import make_detokenizer, token_bytes
from engine.text.thinking import opening_tag
from engine.text.tool_calls import tool_syntax
from engine.training.settings import TrainingEvent, TrainingSettings

TAIL = 16  # tokens of a prompt's end that hold any opening tag


class Engine:
    """One pair on one thread. All but ``check`` must be called from the thread that made it: MLX streams are thread-local."""

    def __init__(
        self,
        target: Target,
        tokenizer: Any,
        drafters: dict[Mode, Drafter],
        stop_ids: frozenset[int],
        info: PairInfo,
        controllers: dict[Mode, Controller] | None = None,
        exactness: Exactness | None = None,
        prefix: PrefixCache | None = None,
        learner: Learner | None = None,
        reassemble: Callable[[], Engine] | None = None,
        *,
        chunk: int,
    ):
        self.info = info
        self._target, self._tokenizer, self._drafters, self.stop_ids = target, tokenizer, drafters, stop_ids
        self._controllers, self._exactness, self._prefix = controllers or {}, exactness, prefix
        self._learner, self._reassemble = learner, reassemble
        self._unsettled: Generator[None] | None = None
        self._owner, self._closed = threading.get_ident(), False
        make_detokenizer(tokenizer, stop_ids)  # builds and keeps its tables now, not when the first answer starts
        self.tool_syntax = tool_syntax(tokenizer)  # how this model calls tools; None where it does not
        self._chunk, self._grammars = chunk, Grammars(tokenizer, target.shape.vocab_size, stop_ids)

    @property
    def prefill_chunk(self) -> int:
        """Tokens of one prefill pass: prompts are cut at its multiples, in every mode. A power of two."""
        return self._chunk

    def encode(
        self, messages: Sequence[Message], thinking: bool | None = None, tools: Sequence[str] = (), raw: bool = False
    ) -> list[int]:
        """Prompt token ids of a chat, as ``generate`` would run them."""
        return encode_chat(self._tokenizer, messages, thinking, tools, raw)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """How many prompt tokens a chat makes, its template included."""
        return len(self.encode(messages))

    def token_bytes(self) -> dict[int, bytes]:
        """The bytes of every token: what one spells by itself may be part of a character only."""
        return token_bytes(self._tokenizer)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of token ids, special tokens included: for reports, not for streaming."""
        return self._tokenizer.decode(list(token_ids))

    def generate(self, request: GenerationRequest, cancel: threading.Event | None = None) -> Iterator[Event]:
        """Answers ``request`` as a stream of events that ends with ``Finished``.

        ``cancel`` is looked at after every prefill chunk and every cycle; what was produced by then is in ``Finished``.
        Raises ``RequestError`` (``ContextOverflow`` among them) before the first event, and ``ModelError`` in place of
        ``Finished`` when the target's logits stop being numbers: what the events said until then stands, no token is made up.
        """
        self._check_owner()
        self._drop_unsettled()
        start = time.perf_counter()
        fitted = self._fit(request)
        if request.sparse is not None:
            fitted = replace(fitted, runs=self._read_in_part(request.sparse, fitted, request.thinking))
        cancel = cancel or threading.Event()
        return guarded(self._run(request, fitted, cancel, start), self._shed, cancel)

    def check(self, request: GenerationRequest) -> int:
        """How many tokens the prompt has; raises what ``generate`` would before its events. On any thread: it uses no MLX."""
        self._check_open()
        return len(self._fit(request).ids)

    def settle(self) -> bool:
        """Does one chunk's work, if any is left, towards the next turn of the chat answered last; True while there may be more.

        For the time in which nobody waits: the answer's tokens are prefilled as the next prompt would have to. A request that
        comes before the end keeps what was done.
        """
        self._check_owner()
        if self._unsettled is None:
            return False
        if next(self._unsettled, False) is False:  # it yields None until it ends
            self._unsettled = None
        return self._unsettled is not None

    def top2_margin(self, token_ids: Sequence[int]) -> float:
        """How far, in logits, the target's first choice after ``token_ids`` leads its second: how near a tie is."""
        self._check_owner()
        return top2_margin(self._target, token_ids, self._chunk)

    def measure_exactness(
        self, cancel: threading.Event | None = None, progress: Callable[[float], None] | None = None
    ) -> tuple[int, ...]:
        """``info.exact_widths``, measured now where they are not known yet; none where nothing can be proposed.

        ``progress`` is told the share that is done. Raises ``Cancelled`` soon after ``cancel`` is set: then nothing is known yet.
        """
        self._check_owner()
        for step in self._measure(cancel or threading.Event()):
            if progress is not None:
                progress(step.fraction)
        if self.info.exact_widths is None:
            raise Cancelled("Measuring which block lengths are exact was stopped: the next time it begins anew.")
        return self.info.exact_widths

    def _measure(self, cancel: threading.Event) -> Iterator[ExactnessProgress]:
        """Pass by pass until ``info.exact_widths`` is known or ``cancel`` is set."""
        if self.info.exact_widths is not None or self._exactness is None:
            return
        for fraction in self._exactness.measuring():
            yield ExactnessProgress(fraction)
            if cancel.is_set():
                return
        self.info = replace(self.info, exact_widths=self._exactness.widths)

    def learn(
        self,
        chats: Sequence[Sequence[Message]],
        cancel: threading.Event | None = None,
        settings: TrainingSettings | None = None,
    ) -> Iterator[TrainingEvent]:
        """Trains a copy of the draft in use on ``chats``, whose questions the target answers anew; the draft in use stays as it is.

        The last event is ``TrainingFinished``. If it says ``better``, ``use_learned(True)`` takes the new draft; otherwise nothing
        is kept. ``cancel`` is looked at between the passes of a step; a later call with the same chats goes on from there. Raises
        ``RequestError`` where the draft cannot be trained or there is too little text, ``Cancelled`` while texts are written.
        """
        self._check_owner()
        yield from self._required_learner().learn(chats, settings, cancel or threading.Event())

    def use_learned(self, on: bool) -> Engine:
        """The engine to use from now on: the same target with the draft learned from the user's chats, or with the pair's own.

        This engine is closed. Raises ``ModelError`` where the draft cannot be read any more: then it goes on as before, but for
        prefixes on disk, to which nothing is added.
        """
        self._check_owner()
        drafts, reassemble = self._required_learner().drafts, self._reassemble
        assert reassemble is not None
        before = drafts.read()
        drafts.use(on)
        self._drop_unsettled()
        if self._prefix is not None:
            self._prefix.close()  # first: both would write into one folder
        try:
            changed = reassemble()
        except ModelError:
            drafts.use(before is not None and before.in_use)
            raise
        self.close()
        return changed

    def forget_prefixes(self) -> None:
        """Forgets what is kept of prompts, in memory and on disk: for when a chat is deleted for good."""
        self._check_owner()
        self._drop_unsettled()  # first: what it recorded is kept when it ends
        if self._prefix is not None:
            self._prefix.forget()

    def close(self) -> None:
        """Gives the weights back; a second call changes nothing."""
        if self._closed:
            return
        self._check_owner()
        self._closed = True
        self._drop_unsettled()
        if self._prefix is not None:
            self._prefix.close()
        self._drafters, self._exactness, self._prefix, self._learner, self._reassemble = {}, None, None, None, None
        del self._target
        give_back()

    def _shed(self) -> None:
        """What only saves time goes, because the system is short of memory."""
        if self._prefix is not None:
            self._prefix.shed()
        give_back()

    def _required_learner(self) -> Learner:
        if self._learner is None:
            raise RequestError("This model cannot learn: load it by its name first.")
        return self._learner

    def _fit(self, request: GenerationRequest) -> Fitted:
        request.check_vocabulary(self._target.shape.vocab_size)
        if request.tools and self.tool_syntax is None:
            raise RequestError("tools cannot be used, because this model was not made to call any: leave them out.")
        self._grammars.check(request)
        return fit_context(request, self._encoder(request), self.info.context_length)

    def _encoder(self, request: GenerationRequest) -> Encode:
        return partial(self.encode, thinking=request.thinking, tools=request.tools, raw=request.raw)

    def _read_in_part(self, sparse: SparsePrefill, fitted: Fitted, thinking: bool | None) -> tuple[Run, ...] | None:
        """The stretches of the prompt to read, None where that is all of it."""
        self._target.make_sparse_cache()  # refuses before anything is done
        prompt = describe(self._tokenizer, fitted.messages, fitted.ids, thinking)
        attend = partial(attention_weights, self._target, prompt.ids, prompt.turn, self.prefill_chunk)
        kept = choose_tokens(sparse, prompt, lambda token: self.decode([token]), attend)
        return None if kept.all() else tuple(runs_of(kept))

    def _run(self, request: GenerationRequest, fitted: Fitted, cancel: threading.Event, start: float) -> Generator[Event]:
        if request.exact and request.mode != "baseline":
            began = time.perf_counter()
            yield from self._measure(cancel)
            start += time.perf_counter() - began  # done once, so no cost of this answer
        drafter, reason = choose_drafter(request, self._drafters, self.info)
        prompt, room = fitted.ids, self.info.context_length - len(fitted.ids)
        mode: Mode = drafter.mode if drafter else "baseline"
        controller = self._controllers.get(drafter.mode) if drafter else None
        costs = controller.costs if controller else None
        open_tag = opening_tag(self.decode(prompt[-TAIL:]))
        answer = Answer(self._tokenizer, self.stop_ids, request.stop, len(prompt), start, reason, costs, open_tag)
        yield from answer.notices(fitted)
        cache = self._target.make_cache() if fitted.runs is None else self._target.make_sparse_cache()
        sampler = Sampler.of(request, prompt)
        session = drafter.session(sampler.propose) if drafter else None
        taps = drafter.taps if drafter else ()
        guide, ready = self._grammars.guide(request, open_tag), None
        with kept_resident(), self._kept(request, fitted, answer, cache, session, cancel) as recording:
            if answer.cached_tokens:
                yield PrefillProgress(answer.cached_tokens, len(prompt), answer.now())
            read = partial(prefill, recording=recording) if fitted.runs is None else partial(sparse_prefill, runs=fitted.runs)
            for outcome in read(self._target, cache, prompt, session=session, taps=taps, chunk=self._chunk, cancel=cancel):
                if isinstance(outcome, Prefilled):
                    ready = outcome
                else:
                    yield PrefillProgress(outcome, len(prompt), answer.now())
            if ready is None:
                yield answer.finish("cancelled", mode)
                return
            logits = ready.logits if guide is None else guide.held(ready.logits)
            anchor = sampler.pick(logits, len(prompt))
            state = Decoding(
                target=self._target,
                cache=cache,
                sampler=sampler,
                stop_ids=self.stop_ids,
                max_tokens=min(request.max_tokens, room),
                cancel=cancel,
                position=len(prompt),
                anchor=anchor,
                anchor_logprobs=sampler.score(logits, anchor),
                committed=list(prompt),
                session=session,
                taps=taps,
                tap_rows=ready.taps,
                recall=self._recall(request, drafter),
                policy=self._policy(request, drafter),
                widths=self.info.exact_widths if request.exact else None,
                guide=guide,
            )
            for event in self._decode(state, answer, mode, len(prompt), room < request.max_tokens):
                if isinstance(event, Started):
                    event = replace(event, open_tag=open_tag)
                if isinstance(event, Finished) and recording is not None:
                    coming = partial(continued_prefix, self._encoder(request), fitted.messages, open_tag + event.text)
                    self._unsettled = prefill_ahead(self._target, self._prefix, self._chunk, self.info.context_length, coming)
                yield event

    @contextmanager
    def _kept(
        self,
        request: GenerationRequest,
        fitted: Fitted,
        answer: Answer,
        cache: Cache,
        session: DraftSession | None,
        cancel: threading.Event,
    ) -> Iterator[Recording | None]:
        """Fills ``cache`` and ``session`` from the prefix cache and yields what records the rest; None where it is not to be used.

        What was recorded is kept once the answer is over, so that nobody waits for it. After an error nothing is.
        """
        prefix = self._prefix
        answer.cache = "turned off" if prefix is None or not request.use_cache else prefix.off_reason or ""
        if fitted.runs is not None:
            answer.cache = "the prompt is read in part only"
        if prefix is None or answer.cache:
            yield None
            return
        places = partial(parting_places, self._encoder(request), fitted.messages, fitted.ids)
        with prefix.recording(fitted.ids, cache, session, places, cancel) as recording:
            answer.cached_tokens, answer.cache = recording.tokens, recording.source
            yield recording

    def _drop_unsettled(self) -> None:
        unsettled, self._unsettled = self._unsettled, None
        if unsettled is not None:
            unsettled.close()

    def _policy(self, request: GenerationRequest, drafter: Drafter | None) -> Policy:
        if drafter is None:
            return FixedLength(1)
        if request.block_length is None and (controller := self._controllers.get(drafter.mode)) is not None:
            controller.begin(self.info.exact_widths if request.exact else None)
            return controller
        return FixedLength(request.block_length or drafter.block_length, "lookup" if drafter.mode == "lookup" else "draft")

    def _recall(self, request: GenerationRequest, drafter: Drafter | None) -> Recall | None:
        """Lookup by itself, or as the companion of a draft whose block length is not prescribed."""
        wanted = drafter is not None and (drafter.mode == "lookup" or request.block_length is None)
        return LookupIndex(self.stop_ids) if wanted else None

    def _decode(self, state: Decoding, answer: Answer, mode: Mode, prompt_tokens: int, tight: bool) -> Iterator[Event]:
        """``tight``: the context ends before the token limit that was asked for."""
        plain = mode == "baseline"
        steps = decode(state, plain)
        length = 0 if plain else state.policy.block_length
        try:
            for index, step in enumerate(steps):
                if index == 0:
                    answer.begin_decoding()
                    yield PrefillProgress(prompt_tokens, prompt_tokens, answer.now())
                    yield Started(mode, prompt_tokens, answer.cached_tokens, length, answer.now(), answer.cache)
                yield from answer.take(step, first=index == 0)
                if not plain and state.policy.block_length != length:
                    length = state.policy.block_length
                    yield BlockLength(length, state.policy.reason, answer.now())
                if answer.ended_by_string:
                    break
        finally:
            steps.close()
        ended = answer.reason(state.cancel.is_set(), state.max_tokens)
        yield from answer.flush(cut=ended != "stop")
        if not answer.ended_by_string:
            state.check_numbers()
        if tight and ended == "length":
            yield answer.context_full(self.info.context_length)
        yield answer.finish(ended, mode)

    def _check_owner(self) -> None:
        if threading.get_ident() != self._owner:
            raise RuntimeError("The engine belongs to the thread that loaded it: MLX streams are thread-local.")
        self._check_open()

    def _check_open(self) -> None:
        if self._closed:
            raise RequestError("The engine was closed: load the model again.")
