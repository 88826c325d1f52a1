"""Benchmark: the prefix cache's disk tier: throughput, start with 10,000 files, and what its writer costs decoding.

    python -m tests.perf.prefix_disk [FOLDER] [ROUNDS]

FOLDER (a temporary one by default) should lie on the disk that is meant. Decoding takes turns with and without the writer at
work; each round gives one ratio of rates, and their median is printed with its spread. Below 1: the writer slows decoding.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx

from engine import Finished, GenerationRequest, load
from engine.engine import Engine
from engine.prefix.disk import DiskTier
from engine.prefix.disk_format import prepare, write_prepared
from engine.prefix.segment import Segment
from tests.engine.prefix.disk_segments import CONTENT, found, make_tier

TOKENS, SEGMENT = 4_000, 500
LAYERS, HEADS, HEAD = 30, 3, 64  # the starter target's keys and values, 46 kB a token in fp32
FILES = 10_000
DECODED = 96


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


def decoding_rate(engine: Engine, mode: str) -> float:
    """Tokens per second of one answer."""
    *_, end = engine.generate(GenerationRequest.of("Explain how rainbows form.", mode=mode, max_tokens=DECODED))
    assert isinstance(end, Finished)
    return end.statistics.decode_tok_s


def rate_while_writing(engine: Engine, mode: str, tier: DiskTier, like: Segment, first: int) -> tuple[float, float]:
    """The same while the writer never runs out of work; also how many megabytes a second it wrote."""
    for number in range(400):
        tier.store(prefix(first + SEGMENT * number, like=like))
    ledger = tier._ledger
    before, begin = sum(size for _, size in ledger._writes) if ledger.allows(0) else 0, time.perf_counter()
    rate = decoding_rate(engine, mode)
    took = time.perf_counter() - begin
    assert tier._writer.backlog > like.nbytes, "the writer ran out of work"
    ledger.allows(0)
    written = sum(size for _, size in ledger._writes) - before
    tier._writer.drop()
    tier.flush(60)
    return rate, written / 1e6 / took


def decoding(folder: Path, rounds: int) -> dict:
    """Decoding with and without the writer at work, by turns, in both modes."""
    engine, like = load("starter"), prefix(0)
    tier = make_tier(folder, budget=2**30, backlog_bytes=2**40)
    result = {}
    for mode in ("baseline", "dflash"):
        decoding_rate(engine, mode)
        pairs, speeds = [], []
        for number in range(rounds):
            alone = decoding_rate(engine, mode) if number % 2 else 0.0
            busy, speed = rate_while_writing(engine, mode, tier, like, 10**8 * (number + 1) + (mode == "dflash") * 10**6)
            pairs.append((busy, alone or decoding_rate(engine, mode)))
            speeds.append(speed)
        ratios = sorted(busy / alone for busy, alone in pairs)
        result[mode] = {"ratio_median": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1]}
        result[mode] |= {"alone_tok_s": statistics.median(pair[1] for pair in pairs), "rounds": rounds}
        result[mode]["written_mb_s"] = statistics.median(speeds)
    tier.close()
    engine.close()
    return result


def main(folder: str | None, rounds: int) -> None:
    """Prints one JSON object."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        folders = [Path(place) / name for name in ("throughput", "files", "decoding")]
        for path in folders:
            path.mkdir()
        result = {"throughput": throughput(folders[0]), "many_files": many_files(folders[1])}
        print(json.dumps(result | {"decoding": decoding(folders[2], rounds)}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None, int(sys.argv[2]) if len(sys.argv) > 2 else 7)
