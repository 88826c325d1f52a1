"""A short check of a loaded draft: how often its first guess is right. What is read wrongly raises no error, it only shows here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from engine.decoding.controller import FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.speculative import decode_speculative
from engine.decoding.steps import Decoding
from engine.drafters.protocol import Drafter
from engine.errors import Cancelled
from engine.measured import measured_once
from engine.prefill.chunked import Prefilled, prefill
from engine.request import Message
from engine.targets.protocol import Target
from engine.text.chat import encode_chat

QUESTION = "Write a Python function that returns the larger of two numbers."  # code is where any draft guesses best
CYCLES = 8
SLOTS = 4
IMPLAUSIBLE = 0.2  # of first guesses right: below it are drafts made for another model or not read as they were meant
CHUNK = 64  # tokens of a prefill pass: small, as the question is
FORMAT = 1  # of what is kept, and of how it is measured


@dataclass(frozen=True, slots=True)
class FirstGuesses:
    """``right`` of ``cycles`` first guesses were right, over which ``tokens`` were committed."""

    right: int
    cycles: int
    tokens: int

    @property
    def notice(self) -> str | None:
        """In words for the user what is wrong, None where the draft may be weak but not implausibly so."""
        if self.right >= IMPLAUSIBLE * self.cycles:
            return None
        return (
            f"In a short check the draft's first guess was right {self.right} of {self.cycles} times: it was probably trained for "
            "another model, or its files are of a kind that is read wrongly. Answers stay the model's own, but nothing is gained: "
            "choose another draft or none."
        )


def first_guesses(target: Target, tokenizer: Any, drafter: Drafter, cancel: threading.Event | None = None) -> FirstGuesses:
    """Answers ``QUESTION`` greedily for ``CYCLES`` blocks, fewer where the context ends. Raises ``Cancelled``, ``ModelError``."""
    prompt, cancel = encode_chat(tokenizer, [Message("user", QUESTION)]), cancel or threading.Event()
    room = target.shape.context_length - len(prompt)
    if room < 2:
        return FirstGuesses(0, 0, 0)
    cache, session, sampler = target.make_cache(), drafter.session(), Sampler(0.0, 0)
    ready = None
    for outcome in prefill(target, cache, prompt, session, drafter.taps, CHUNK, cancel):
        ready = outcome if isinstance(outcome, Prefilled) else None
    if ready is None:
        raise Cancelled("Loading was cancelled: nothing was loaded.")
    state = Decoding(
        target=target,
        cache=cache,
        sampler=sampler,
        stop_ids=frozenset(),  # what a model says past its end is as good to guess at
        max_tokens=min(room, 1 + CYCLES * SLOTS),
        cancel=cancel,
        position=len(prompt),
        anchor=sampler.pick(ready.logits, len(prompt)),
        committed=list(prompt),
        session=session,
        taps=drafter.taps,
        tap_rows=ready.taps,
        policy=FixedLength(min(SLOTS, drafter.block_length)),
    )
    steps = decode_speculative(state)
    cycles = [step for step in islice(steps, 1, 1 + CYCLES) if step.proposed]
    steps.close()
    if cancel.is_set():
        raise Cancelled("Loading was cancelled: nothing was loaded.")
    return FirstGuesses(sum(step.accepted > 0 for step in cycles), len(cycles), sum(len(step.tokens) for step in cycles))


def kept_first_guesses(
    folder: Path, identity: Sequence[str], target: Target, tokenizer: Any, drafter: Drafter, cancel: threading.Event | None
) -> FirstGuesses:
    """The outcome kept in ``folder`` for ``identity`` (machine, pair, files, convention), found out now where there is none."""
    return measured_once(
        folder,
        "first-guesses",
        [str(FORMAT), *identity],
        lambda record: FirstGuesses(int(record["right"]), int(record["cycles"]), int(record["tokens"])),
        lambda: asdict(first_guesses(target, tokenizer, drafter, cancel)),
    )
