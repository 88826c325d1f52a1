"""A scripted engine with the real engine's interface, for speed, burst, crash, stall and cancel cases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from engine import (
    BlockLength,
    Cancelled,
    ContextOverflow,
    Cycle,
    Event,
    ExactnessProgress,
    Fallback,
    Finished,
    GenerationRequest,
    Learned,
    LoadOptions,
    LoadProgress,
    Message,
    Mode,
    PairInfo,
    PrefillProgress,
    RequestError,
    Started,
    Statistics,
    TextDelta,
    ThinkingSplitter,
    TrainingEvent,
    TrainingFinished,
    TrainingStep,
)

ANSWER = "A rainbow forms when sunlight enters a drop of water. The drop bends the light and splits it into colours. "


@dataclass
class Script:
    """How the scripted engine behaves. Times in seconds, ``rate`` in tokens per second (0: as fast as it can)."""

    text: str = ANSWER
    text_by_mode: dict[str, str] = field(default_factory=dict)
    tokens: int = 40
    rate: float = 0.0
    block_length: int = 4
    accepted_per_cycle: tuple[int, ...] = (3, 1, 2, 0)
    baseline_slowdown: float = 2.0
    load_s: float = 0.0
    load_error: Exception | None = None
    refusal: Exception | None = None
    prefill_steps: int = 2
    prefill_s: float = 0.0
    crash_at: int | None = None
    crash_error: Exception = field(default_factory=lambda: RuntimeError("scripted crash"))
    stall_at: int | None = None
    deaf_stall: threading.Event | None = None
    fallback: str | None = None
    parks_after: int | None = None  # cycles until speculation is parked
    parks_because: str = "Plain decoding is faster here: the draft's next token is right 10% of the time"
    context_length: int = 8192
    has_draft: bool = True
    notices: tuple[str, ...] = ()
    settle_steps: int = 0
    settle_error: Exception | None = None
    cached_tokens: int = 0
    open_tag: str = ""
    thinking_switch: bool = False
    learning_steps: int = 3
    learning_step_s: float = 0.0
    learning_figures: tuple[float, float] = (3.0, 3.3)
    learning_error: Exception | None = None
    measuring_steps: int = 0  # of an exact answer, until its pair is measured
    measuring_step_s: float = 0.0
    reads_in_part: bool = True


_VOCABULARY: dict[str, int] = {}  # one id per piece, shared by all modes, so that differing texts differ in their ids


def words_of(text: str) -> list[str]:
    """Cuts text into token-like pieces that join to the same text: every piece keeps its leading space."""
    pieces, start = [], 0
    for index in range(1, len(text)):
        if text[index] in " \n" or text[index - 1] == "\n":
            pieces.append(text[start:index])
            start = index
    pieces.append(text[start:])
    return [piece for piece in pieces if piece]


class ScriptedEngine:
    """Answers ``script.text``, repeated up to ``script.tokens`` tokens, on the thread that made it."""

    stop_ids: frozenset[int] = frozenset()
    tool_syntax = None

    def __init__(self, script: Script, pair: str = "scripted", options: LoadOptions | None = None):
        self.script, self.closed, self._thread = script, False, threading.get_ident()
        self.requests: list[GenerationRequest] = []
        self.settled = 0
        self.learned_from: list[tuple[Sequence[Message], ...]] = []
        self.steps_done: dict[tuple[Sequence[Message], ...], int] = {}
        draft = "scripted draft" if script.has_draft else None
        self.info = PairInfo(
            pair, "Scripted pair", "scripted", "cpu", "float32", script.context_length, draft,
            script.block_length if draft else 0, None if draft else "This model has no draft.", 1_000_000,
            thinking_switch=script.thinking_switch, notices=script.notices, reads_in_part=script.reads_in_part,
            kv_bits=options.kv_bits if options else None, draft_bits=options.draft_bits if options else None,
        )  # fmt: skip

    def close(self) -> None:
        assert threading.get_ident() == self._thread, "closed on another thread than it was made on"
        self.closed = True

    def count_tokens(self, messages: Sequence[Message]) -> int:
        assert threading.get_ident() == self._thread
        return self._count(messages)

    def _count(self, messages: Sequence[Message]) -> int:
        return sum(len(message.content.split()) + 4 for message in messages)

    def token_bytes(self) -> dict[int, bytes]:
        assert threading.get_ident() == self._thread
        return {token: piece.encode() for piece, token in _VOCABULARY.items()}

    def check(self, request: GenerationRequest) -> int:
        """Allowed on every thread, as the real engine's."""
        prompt_tokens = self._count(request.messages)
        if prompt_tokens > self.info.context_length:
            raise ContextOverflow(prompt_tokens, self.info.context_length)
        return prompt_tokens

    def settle(self) -> bool:
        assert threading.get_ident() == self._thread, "MLX streams belong to their thread"
        self.settled += 1
        if self.script.settle_error is not None:
            raise self.script.settle_error
        return self.settled < self.script.settle_steps

    def forget_prefixes(self) -> None:
        assert threading.get_ident() == self._thread, "MLX streams belong to their thread"

    def learn(self, chats: Sequence[Sequence[Message]], cancel: threading.Event) -> Iterator[TrainingEvent]:
        """``script.learning_steps`` steps, going on where an earlier call with the same chats was cancelled."""
        assert threading.get_ident() == self._thread, "MLX streams belong to their thread"
        self.learned_from.append(tuple(chats))
        if self.script.learning_error is not None:
            raise self.script.learning_error
        steps = self.script.learning_steps
        for step in range(self.steps_done.get(tuple(chats), 0) + 1, steps + 1):
            if cancel.wait(self.script.learning_step_s):
                raise Cancelled("paused")
            self.steps_done[tuple(chats)] = step
            yield TrainingStep(step, steps, 1.0, 2.0, 100.0, 1.0, 1.0)
        before, best = self.script.learning_figures
        yield TrainingFinished(steps, steps, before, best, 1.0, 1, "done")

    def use_learned(self, on: bool) -> ScriptedEngine:
        assert threading.get_ident() == self._thread
        changed = ScriptedEngine(self.script, self.info.id)
        changed.requests, changed.learned_from, changed.steps_done = self.requests, self.learned_from, self.steps_done
        changed.info = replace(self.info, learned=Learned(*self.script.learning_figures, on))
        self.close()
        return changed

    def generate(self, request: GenerationRequest, cancel: threading.Event | None = None) -> Iterator[Event]:
        assert threading.get_ident() == self._thread, "MLX streams belong to their thread"
        self.requests.append(request)
        prompt_tokens = self.check(request)
        if not request.messages[-1].content.strip():
            raise RequestError("The prompt is empty: type something to answer.")
        yield from _Answer(self, request, cancel or threading.Event(), prompt_tokens).events()


class _Answer:
    def __init__(self, engine: ScriptedEngine, request: GenerationRequest, cancel: threading.Event, prompt_tokens: int):
        self.script, self.request, self.cancel, self.prompt_tokens = engine.script, request, cancel, prompt_tokens
        self.engine = engine
        wants_draft = request.mode in ("auto", "dflash") and engine.script.has_draft and not engine.script.fallback
        self.mode: Mode = "dflash" if wants_draft else "baseline"
        self.block = request.block_length or engine.script.block_length
        text = engine.script.text_by_mode.get(self.mode, engine.script.text)
        pieces = words_of(text)
        self.limit = min(engine.script.tokens, request.max_tokens)
        repeats = -(-self.limit // len(pieces))
        self.pieces = (pieces * repeats)[: self.limit]
        self.ids = [_VOCABULARY.setdefault(piece, len(_VOCABULARY)) for piece in self.pieces]
        self.thoughts, self.thinking_tokens, self.thinking_s = ThinkingSplitter(engine.script.open_tag), 0, 0.0
        self.begun, self.ttft, self.sent, self.cycles, self.proposed, self.accepted = time.monotonic(), 0.0, 0, 0, 0, 0

    def now(self) -> float:
        return time.monotonic() - self.begun

    def measuring(self) -> Iterator[Event]:
        """As the engine does for the first exact answer: nothing is known where it was cancelled."""
        steps = self.script.measuring_steps
        if not self.request.exact or self.request.mode == "baseline" or self.engine.info.exact_widths is not None:
            return
        for step in range(1, steps + 1):
            if self.cancel.wait(self.script.measuring_step_s):
                return
            yield ExactnessProgress(step / steps)
        self.engine.info = replace(self.engine.info, exact_widths=tuple(range(2, self.script.block_length + 1)))

    def events(self) -> Iterator[Event]:
        script = self.script
        yield from self.measuring()
        for step in range(1, script.prefill_steps + 1):
            if self.cancel.wait(script.prefill_s):
                yield self.finished("cancelled")
                return
            yield PrefillProgress(self.prompt_tokens * step // script.prefill_steps, self.prompt_tokens, self.now())
        if script.fallback and self.request.mode != "baseline":
            yield Fallback(script.fallback)
        self.ttft = self.now()
        block = self.block if self.mode == "dflash" else 0
        source = "memory" if script.cached_tokens else ""
        yield Started(self.mode, self.prompt_tokens, script.cached_tokens, block, self.now(), source, script.open_tag)
        self.sent = 1
        self.think(self.pieces[0], 1)
        yield TextDelta(self.pieces[0], (self.ids[0],), self.now())
        while self.sent < self.limit:
            if self.cancel.is_set():
                yield self.finished("cancelled")
                return
            self.misbehave()
            yield from self.cycle()
        yield self.finished("cancelled" if self.cancel.is_set() else "length")

    def misbehave(self) -> None:
        script = self.script
        if script.crash_at is not None and self.sent >= script.crash_at:
            raise script.crash_error
        if script.stall_at is not None and self.sent >= script.stall_at:
            # A deaf stall does not hear cancel: only the test's own event ends it.
            (script.deaf_stall or self.cancel).wait()

    def cycle(self) -> Iterator[Event]:
        script = self.script
        parked = script.parks_after is not None and self.cycles >= script.parks_after
        if self.mode == "dflash" and not parked:
            proposed = self.block - 1
            accepted = min(script.accepted_per_cycle[self.cycles % len(script.accepted_per_cycle)], proposed)
        else:
            proposed = accepted = 0
        committed = min(accepted + 1, self.limit - self.sent)
        if script.rate:
            pace = script.rate if self.mode == "dflash" else script.rate / script.baseline_slowdown
            due = self.ttft + (self.sent - 1 + committed) / pace
            self.cancel.wait(max(0.0, due - self.now()))
        yield Cycle(self.cycles, proposed, accepted, committed, self.now())
        if self.mode == "dflash" and self.cycles + 1 == script.parks_after:
            yield BlockLength(0, script.parks_because, self.now())
        piece = slice(self.sent, self.sent + committed)
        self.sent, self.cycles = self.sent + committed, self.cycles + 1
        self.proposed, self.accepted = self.proposed + proposed, self.accepted + accepted
        self.think("".join(self.pieces[piece]), committed)
        yield TextDelta("".join(self.pieces[piece]), tuple(self.ids[piece]), self.now())

    def think(self, text: str, tokens: int) -> None:
        """Counts thoughts as the engine does: what the window shows of them must not depend on when it looks."""
        inside = self.thoughts.thinking
        if self.thoughts.feed(text).thinking or inside or self.thoughts.thinking:
            self.thinking_tokens, self.thinking_s = self.thinking_tokens + tokens, self.now() - self.ttft

    def finished(self, reason) -> Finished:
        decode_s = max(self.now() - self.ttft, 1e-9) if self.sent else 0.0
        statistics = Statistics(
            self.mode, self.prompt_tokens, 0, self.sent, self.ttft, decode_s, self.cycles, self.proposed, self.accepted,
            decode_s * 0.2, decode_s * 0.8, 0, self.script.fallback,
            thinking_tokens=self.thinking_tokens if self.thoughts.thought else 0,
            thinking_s=self.thinking_s if self.thoughts.thought else 0.0,
        )  # fmt: skip
        return Finished(reason, "".join(self.pieces[: self.sent]), tuple(self.ids[: self.sent]), statistics)


class ScriptedLoader:
    """A loader for ``EngineWorker``; ``script`` may be changed between loads, ``engines`` holds every engine made."""

    def __init__(self, script: Script | None = None):
        self.script = script or Script()
        self.engines: list[ScriptedEngine] = []
        self.options = LoadOptions()

    def check(self, pair: str, options: LoadOptions) -> None:
        if self.script.refusal is not None:
            raise self.script.refusal

    def __call__(
        self, pair: str, progress: Callable[[LoadProgress], None], cancel: threading.Event, options: LoadOptions
    ) -> ScriptedEngine:
        steps, self.options = 4, options
        for step in range(steps):
            progress(LoadProgress("Loading", step / steps))
            if cancel.wait(self.script.load_s / steps):
                raise Cancelled("Loading was stopped.")
        if self.script.load_error is not None:
            raise self.script.load_error
        self.engines.append(ScriptedEngine(self.script, pair, options))
        return self.engines[-1]
