"""Benchmark: time to the first token from the prefix cache against none, and a chat of ten turns.

    python -m tests.perf.prefix [TOKENS]

Runs in a folder of its own, so that nothing kept before can help. ``recorded`` is a first run that fills the cache: over ``cold``
it is what keeping costs. ``disk`` is the first run of a newly loaded engine. A turn's ``new`` tokens are those that neither the
turn before nor its answer had; ``settle_s`` passed between the turns, while a person would read.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from engine import Finished, GenerationRequest, Message, load
from engine.engine import Engine
from engine.models.paths import data_folder
from engine.prefix.boundaries import common_prefix

QUESTIONS = (
    "Which ship sailed first?", "How many miles is that?", "Name a port.", "Who was the captain?", "What did they carry?",
    "Was the sea calm?", "What colour was the sail?", "How did it end?", "Give it a title.", "Thank you.",
)  # fmt: skip


def story(engine: Engine, tokens: int) -> str:
    """A text of about ``tokens`` prompt tokens."""
    lines, text = 0, ""
    while engine.count_tokens([Message("user", text)]) < tokens:
        lines += max(1, tokens // 200)
        text = "\n".join(f"Day {day}: ship {day % 7} sailed {3 * day} miles north and met ship {day % 5}." for day in range(lines))
    return text


def answer(engine: Engine, messages: tuple[Message, ...], mode: str, use_cache: bool = True, tokens: int = 8) -> Finished:
    """One answer's end."""
    request = GenerationRequest(messages, mode=mode, max_tokens=tokens, use_cache=use_cache)
    *_, end = engine.generate(request)
    assert isinstance(end, Finished)
    return end


def revisits(engine: Engine, messages: tuple[Message, ...], mode: str) -> dict[str, float | int]:
    """Seconds to the first token from the start, and what recording and memory are of that; texts must not differ."""
    cold, recorded = answer(engine, messages, mode, use_cache=False), answer(engine, messages, mode)
    kept = [answer(engine, messages, mode) for _ in range(3)]
    assert len({end.token_ids for end in (cold, recorded, *kept)}) == 1, "a text changed"
    first = cold.statistics.ttft_s
    return {
        "prompt_tokens": cold.statistics.prompt_tokens,
        "cached_tokens": kept[0].statistics.cached_tokens,
        "cold_s": first,
        "recorded_over_cold": recorded.statistics.ttft_s / first,
        "memory_over_cold": statistics.median(end.statistics.ttft_s for end in kept) / first,
    }


def chat(engine: Engine) -> list[dict[str, float | int]]:
    """Ten turns of one chat."""
    turns: list[dict[str, float | int]] = []
    messages: list[Message] = [Message("user", story(engine, 500) + "\n" + QUESTIONS[0])]
    before: list[int] = []
    for question in (*QUESTIONS[1:], ""):
        ids = engine.encode(messages)
        end = answer(engine, tuple(messages), "dflash", tokens=32)
        start = time.perf_counter()
        while engine.settle():
            pass
        turns.append({
            "prompt": len(ids), "new": len(ids) - common_prefix(before, ids), "cached": end.statistics.cached_tokens,
            "ttft_s": round(end.statistics.ttft_s, 3), "settle_s": round(time.perf_counter() - start, 3),
        })  # fmt: skip
        messages += [Message("assistant", end.text), Message("user", question)]
        before = engine.encode(messages[:-1])
    return turns


def show(name: str, figures: object) -> None:
    """One line of JSON, as soon as it is known."""
    print(json.dumps({name: figures}), flush=True)


def main(tokens: int) -> None:
    """Prints a line for each part."""
    real = data_folder()
    with tempfile.TemporaryDirectory() as home:
        for entry in real.iterdir():
            if entry.is_dir() and entry.name not in ("cache", "logs"):
                (Path(home) / entry.name).symlink_to(entry)
        os.environ["SLIPSTREAM_HOME"] = home
        engine = load("starter")
        hello, messages = (Message("user", "Hello"),), (Message("user", story(engine, tokens)),)
        answer(engine, hello, "dflash")
        show("engine", {"device": engine.info.device, "block": engine.prefill_chunk})
        figures = revisits(engine, messages, "dflash")
        show("dflash", figures)
        start = time.perf_counter()
        engine.close()
        show("close_s", time.perf_counter() - start)
        engine = load("starter")
        answer(engine, hello, "dflash")
        restarted = answer(engine, messages, "dflash").statistics
        show("disk_over_cold", restarted.ttft_s / figures["cold_s"])
        show("disk_tokens", restarted.cached_tokens)
        show("baseline", revisits(engine, (Message("user", "Again. " + story(engine, tokens // 4)),), "baseline"))
        for turn in chat(engine):
            show("turn", turn)
        engine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
