"""Another process at work on a folder of stored prefixes: ``python -m tests.engine.prefix.disk_child WHAT FOLDER [NUMBER]``."""

from __future__ import annotations

import json
import logging
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine.prefix import disk, disk_writer
from tests.engine.prefix.disk_segments import CONTENT, found, make_tier, same, segment, stored

NOBODY = 65_534


def endless(folder: Path, number: int) -> None:
    """Stores one segment of some megabytes after another until it is killed."""
    tier = make_tier(folder)
    for token in range(number, 2**30):
        stored(tier, [segment([token] * 8, width=2**17)])


def slow(folder: Path, number: int) -> None:
    """Takes its time over the one segment of ``number`` that it stores: until there is a file "go"."""
    disk_writer.Writer.pause = lambda self: wait_for(folder / "go")  # type: ignore[method-assign]
    tier = make_tier(folder)
    stored(tier, [segment([number] * 8, width=2**17)])
    tier.close()


def wait_for(file: Path) -> None:
    """Until there is such a file."""
    while not file.exists():
        time.sleep(0.005)


def share(folder: Path, number: int) -> None:
    """Stores, loads and evicts on a small budget beside others; prints how many loads were right and how many bytes there were."""
    tier = make_tier(folder, budget=2_000_000)
    dice = random.Random(number)
    right, most = 0, 0
    for step in range(60):
        root = segment([dice.randrange(12)] * 10, width=1000)
        leaf = segment([dice.randrange(12)] * 10, root, width=1000)
        for part in (root, leaf):
            tier.store(part)
        if step % 3 == 0:
            assert tier.flush(60)
        for part in (root, leaf):
            loaded = tier.load(part.key)
            assert loaded is None or same(loaded, part)
            right += loaded is not None
        tier.match(CONTENT, [*root.token_ids, *leaf.token_ids])
        most = max(most, sum(size(file) for file in folder.glob("*.segment")))
    tier.close()
    print(json.dumps({"right": right, "most": most}))


def size(file: Path) -> int:
    """Bytes on disk, 0 once it is gone."""
    try:
        return 512 * file.stat().st_blocks
    except FileNotFoundError:
        return 0


def cramped(folder: Path, number: int) -> None:
    """Meets a limit of ``number`` bytes a file as it would meet a full disk."""
    lines = listen()
    tier = make_tier(folder)
    small = segment([1] * 4)
    stored(tier, [small])
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
    for token in range(2, 30):
        stored(tier, [segment([token] * 8, width=2**16)])
    names = sorted(file.name for file in folder.iterdir())
    tries = len((folder / "writes").read_text().splitlines()) - 1
    print(
        json.dumps({"lines": lines, "tries": tries, "names": names, "loads": same(tier.load(small.key), small), "small": small.key})
    )
    tier.close()


def read_only(folder: Path, number: int) -> None:
    """Works as a user who may read the folder but not write to it; one file may not even be read."""
    os.chdir(folder)
    here = Path()
    files = sorted(here.iterdir())
    if os.geteuid() == 0:
        for path in (here, *files):
            os.chown(path, NOBODY, NOBODY)
        os.setuid(NOBODY)
    kept, barred = (segment([token] * 4) for token in (1, 2))
    Path(f"{barred.key}.segment").chmod(0)
    here.chmod(0o500)
    lines = listen()
    tier = make_tier(here)
    held = tier.nbytes
    result = {"loads": same(tier.load(kept.key), kept), "barred": tier.load(barred.key) is None, "found": found(tier, [1] * 4)}
    result["counted"] = tier.nbytes == held > 0
    for token in range(2, 30):
        stored(tier, [segment([token] * 8)])
    tier.clear()
    tier.close()
    here.chmod(0o700)
    print(json.dumps({**result, "lines": lines, "untouched": sorted(here.iterdir()) == files}))


def unclosed(folder: Path, number: int) -> None:
    """Ends without closing its tier."""
    tier = make_tier(folder)
    for token in range(number):
        tier.store(segment([token] * 8, width=2**14))


def hopeless(folder: Path, number: int) -> None:
    """Ends, interrupted while it closes, with far more to write than the time for it allows."""
    disk_writer.Writer.pause = slowly(disk_writer.Writer.pause)  # type: ignore[method-assign]
    disk.CLOSE_S = 0.1
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
    tier = make_tier(folder)
    for token in range(number):
        tier.store(segment([token] * 8, width=2**18))
    print("closing", flush=True)
    tier.close(60)


def slowly(pause: Callable) -> Callable:
    """The same with 0.4 s more of rest."""
    return lambda self: (time.sleep(0.4), pause(self))


def listen() -> list[str]:
    """The messages of all log lines from now on."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    return lines


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
