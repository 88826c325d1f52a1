"""Brings one file's bytes from the hub: goes on at the byte it has, and tries again by itself while that can help."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx2

from engine.models.download_types import DownloadProblem, RemoteFile
from engine.models.hub_client import answer_problem, backoff, file_address, host, is_passing, retry_wait, transport_problem
from engine.models.staging import NO_ROOM

PATIENCE_S = 600.0  # without a single byte; a closed laptop's clock stands still meanwhile


@dataclass(slots=True)
class _Again(Exception):
    """Asking again may help, after ``wait_s`` seconds; ``problem`` is what is told if it never does."""

    problem: DownloadProblem
    wait_s: float | None = None


async def fetch(
    client: httpx2.AsyncClient,
    file: RemoteFile,
    part: Path,
    moved: Callable[[int], None],
    note: Callable[[str], None],
    patience_s: float = PATIENCE_S,
) -> None:
    """Fills ``part`` with all of the file's bytes, not yet checked.

    ``moved`` gets the bytes that ``part`` holds whenever that changes, ``note`` what is being waited for ("" when it is over).
    Raises ``DownloadProblem``; ``part`` then keeps what arrived.
    """
    last_byte, attempt = time.monotonic(), 0
    while True:
        have = _usable(part, file)
        moved(have)
        if have == file.size:
            return
        try:
            await _stream(client, file, part, have, moved, note)
            if _size(part) == file.size:
                return
            again = _Again(DownloadProblem("network", f"{host()} cut the connection", "check the network and go on with it."))
        except httpx2.RequestError as error:
            if not is_passing(error):
                raise transport_problem(error) from None
            again = _Again(transport_problem(error))
        except OSError as error:
            raise _disk_problem(error, part) from error
        except _Again as asked:
            again = asked
        if _size(part) > have:
            last_byte, attempt = time.monotonic(), 0
        if time.monotonic() - last_byte > patience_s:
            raise again.problem
        wait_s = again.wait_s if again.wait_s is not None else backoff(attempt)
        attempt += 1
        note(f"{again.problem.message}: trying again in {max(1, round(wait_s)):,} s")
        await asyncio.sleep(wait_s * random.uniform(1.0, 1.25))  # so that many files do not come back at once


async def _stream(
    client: httpx2.AsyncClient, file: RemoteFile, part: Path, have: int, moved: Callable[[int], None], note: Callable[[str], None]
) -> None:
    headers = {"Range": f"bytes={have}-"} if have else {}
    async with client.stream("GET", file_address(file.repository, file.revision, file.path), headers=headers) as response:
        if response.status_code == 416:
            part.unlink()  # what is here cannot be the beginning of the file
            raise _Again(DownloadProblem("network", f"{host()} does not go on with {file.path}", "try again later."))
        if response.status_code not in (200, 206):
            wait_s = retry_wait(response, 0)
            problem = answer_problem(response, file.repository)
            if wait_s is None:
                raise problem
            raise _Again(problem, wait_s if response.headers.get("Retry-After") else None)
        begin = have if response.status_code == 206 and _begins_at(response, have) else 0
        _check_length(response, file, begin)
        with part.open("ab" if begin else "wb", buffering=0) as out:
            async for chunk in response.aiter_raw():  # as they come: gathering them would lose some with the connection
                out.write(chunk)
                begin += len(chunk)
                moved(begin)
                note("")


def _begins_at(response: httpx2.Response, have: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _check_length(response: httpx2.Response, file: RemoteFile, begin: int) -> None:
    """A network's own page instead of the file is told from it by its length."""
    promised = response.headers.get("Content-Length", "")
    if promised.isdigit() and int(promised) != file.size - begin:
        raise DownloadProblem(
            "network",
            f"Something else than {file.path} was sent ({int(promised):,} bytes instead of {file.size - begin:,})",
            "if this network has a login page, log in, then try again.",
        )


def _usable(part: Path, file: RemoteFile) -> int:
    """How many bytes of the file are here; a part that is too long is none."""
    have = _size(part)
    if have > file.size or not part.exists():
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(b"")
        return 0
    return have


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _disk_problem(error: OSError, part: Path) -> DownloadProblem:
    if error.errno in NO_ROOM:
        return DownloadProblem("disk", "The disk is full", "free some space and go on with the download; what has arrived is kept.")
    return DownloadProblem("disk", f"{part.parent} cannot be written ({error.strerror})", "check the folder and try again.")
