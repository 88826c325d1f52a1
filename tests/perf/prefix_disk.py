"""Benchmark: the prefix cache's disk tier: throughput, start with 10,000 files, and what its writer costs decoding.

    python -m tests.perf.prefix_disk [FOLDER] [ROUNDS]

FOLDER (a temporary one by default) should lie on the disk that is meant. During each of ROUNDS answers the writer is at work and
held back by turns of a few steps; the ratio is that of the middle steps. Below 1: the writer slows decoding.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx

from engine import GenerationRequest, Mode, TextDelta, load
from engine.engine import Engine
from engine.prefix.disk import DiskTier
from engine.prefix.disk_format import prepare, write_prepared
from engine.prefix.segment import Segment
from tests.engine.prefix.disk_segments import CONTENT, found, make_tier

TOKENS, SEGMENT = 4_000, 500
LAYERS, HEADS, HEAD = 30, 3, 64  # the starter target's keys and values, 46 kB a token in fp32
FILES = 10_000
DECODED = 256
TURN = 8  # steps
PROMPT = "Write a long story about a lighthouse keeper and a whale."
MODES: tuple[Mode, ...] = ("baseline", "dflash")
BLOCK = {"baseline": None, "dflash": 4}


def prefix(first: int, tokens: int = SEGMENT, after: Segment | None = None, like: Segment | None = None) -> Segment:
    """A segment of the starter's size; its arrays are those of ``like``, where given."""
    shape = (tokens, HEADS, HEAD)
    rows = like.rows if like else {f"{kind}{layer}": mx.random.normal(shape) for layer in range(LAYERS) for kind in "kv"}
    mx.eval(rows)
    ids = tuple(range(first, first + tokens))
    return Segment(after.key if after else CONTENT, after.end if after else 0, ids, rows, {})


def seconds(work: Callable[[], object]) -> float:
    """How long ``work`` takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def throughput(folder: Path) -> dict:
    """Writing and reading a prefix of ``TOKENS`` tokens."""
    parts: list[Segment] = []
    for start in range(0, TOKENS, SEGMENT):
        parts.append(prefix(start, after=parts[-1] if parts else None))
    size = sum(part.nbytes for part in parts)
    tier = make_tier(folder)
    store_s = [seconds(lambda part=part: tier.store(part)) for part in parts]
    gentle_s = seconds(lambda: wait(tier, parts[-1].key))
    hasty = [prefix(10**6 + 1000 * number, like=part) for number, part in enumerate(parts)]
    hasty_s = seconds(lambda: [tier.store(part) for part in hasty] and tier.flush(60))
    warm_s = seconds(lambda: [tier.load(part.key) for part in parts])
    for file in folder.glob("*.segment"):
        forget_pages(file)
    cold_s = seconds(lambda: [tier.load(part.key) for part in parts])
    tier.close()
    result = {"mb": size / 1e6, "store_call_ms_longest": 1e3 * max(store_s), "gentle_write_s": gentle_s, "write_s": hasty_s}
    result |= {"write_mb_s": size / 1e6 / hasty_s, "load_warm_s": warm_s, "load_cold_s": cold_s}
    return result | {"load_warm_mb_s": size / 1e6 / warm_s, "load_cold_mb_s": size / 1e6 / cold_s}


def wait(tier: DiskTier, key: str) -> None:
    """Until the segment is written at the writer's own pace."""
    while not tier.match(key, [0]) and tier._writer.holds(key):
        time.sleep(0.005)


def forget_pages(file: Path) -> None:
    """Has the next read come from the disk itself, where the system can do that."""
    if hasattr(os, "posix_fadvise"):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def many_files(folder: Path) -> dict:
    """Starting and asking with ``FILES`` small segments of 64 tokens, in chains of ten."""
    rows = {"keys": mx.zeros((64, 4))}
    mx.eval(rows)
    last: Segment | None = None
    for number in range(FILES):
        after = last if number % 10 else None
        start = after.end if after else 0
        last = Segment(after.key if after else CONTENT, start, tuple(range(number, number + 64)), rows, {})
        prepared = prepare(last)
        descriptor = os.open(folder / f"{prepared.record.key}.segment", os.O_WRONLY | os.O_CREAT, 0o600)
        write_prepared(descriptor, prepared, lambda: None)
        os.close(descriptor)
    tiers: list[DiskTier] = []
    without_s = seconds(lambda: tiers.append(make_tier(folder)))
    tiers[0].close()
    with_s = seconds(lambda: tiers.append(make_tier(folder)))
    assert found(tiers[1], range(64)) == 64
    time.sleep(0.2)  # until the folder's time stamp is told from those of later changes
    tiers[1].match(CONTENT, range(64))
    match_s = seconds(lambda: tiers[1].match(CONTENT, range(64)))
    tiers[1]._budget = tiers[1].nbytes // 2
    evict_s = seconds(lambda: (tiers[1].store(prefix(10**7, 16)), tiers[1].flush(60)))
    tiers[1].close()
    index = (folder / "index").stat().st_size
    result = {"files": FILES, "start_s": with_s, "start_without_index_s": without_s, "index_mb": index / 1e6}
    return result | {"match_ms": 1e3 * match_s, "evict_half_and_write_s": evict_s}


def step_times(engine: Engine, mode: Mode, gate: threading.Event) -> dict[bool, list[float]]:
    """Seconds of every step of one answer, by whether the writer was let through ``gate``; that changes every few steps."""
    times: dict[bool, list[float]] = {True: [], False: []}
    steps, last = 0, 0.0
    gate.clear()
    for event in engine.generate(GenerationRequest.of(PROMPT, mode=mode, max_tokens=DECODED, block_length=BLOCK[mode])):
        if isinstance(event, TextDelta):
            now = time.perf_counter()
            if steps % TURN > 1:  # the first of a turn may still see the end of the turn before
                times[gate.is_set()].append(now - last)
            steps, last = steps + 1, now
            if steps % TURN == 0:
                gate.clear() if gate.is_set() else gate.set()
    return times


def decoding(folder: Path, rounds: int) -> dict:
    """Steps of plain decoding and of speculative decoding with a fixed block, the writer at work or held back by turns."""
    engine, like = load("starter"), prefix(0)
    tier = make_tier(folder, budget=2**30, backlog_bytes=2**40)
    gate = threading.Event()
    pause = tier._writer.pause
    tier._writer.pause = lambda: (gate.wait(), pause())  # type: ignore[method-assign, assignment]
    result = {}
    for mode in MODES:
        steps: dict[bool, list[float]] = {True: [], False: []}
        begin, written = time.perf_counter(), -tier._writer.backlog
        for number in range(200 * rounds):
            tier.store(prefix(10**6 * (1 + number) + MODES.index(mode), like=like))
        written += tier._writer.backlog
        for _ in range(rounds):
            for writing, times in step_times(engine, mode, gate).items():
                steps[writing] += times
        written -= tier._writer.backlog
        assert tier._writer.backlog > like.nbytes, "the writer ran out of work"
        tier._writer.drop()
        result[mode] = ratios(steps[False], steps[True]) | {"written_mb_s": written / 1e6 / (time.perf_counter() - begin) * 2}
    gate.set()
    tier.close()
    engine.close()
    return result


def ratios(alone: list[float], busy: list[float]) -> dict:
    """Rate beside the writer over rate without it: of the middle step, and of the lower quartile, which others disturb least."""
    (alone_quartile, alone_median, _), (busy_quartile, busy_median, _) = (statistics.quantiles(t, n=4) for t in (alone, busy))
    return {
        "ratio_median": alone_median / busy_median,
        "ratio_quartile": alone_quartile / busy_quartile,
        "steps": len(alone) + len(busy),
        "alone_ms_median": 1e3 * alone_median,
        "busy_ms_median": 1e3 * busy_median,
    }


def main(folder: str | None, rounds: int) -> None:
    """Prints one JSON object."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        folders = [Path(place) / name for name in ("throughput", "files", "decoding")]
        for path in folders:
            path.mkdir()
        result = {"throughput": throughput(folders[0]), "many_files": many_files(folders[1])}
        print(json.dumps(result | {"decoding": decoding(folders[2], rounds)}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
