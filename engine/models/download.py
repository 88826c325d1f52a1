"""Fetches a plan's files into the hub cache: resumable at the byte, checked by size and hash, published all at once."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import httpx2
from filelock import FileLock, Timeout

from engine.errors import ModelError
from engine.models import ledger
from engine.models.download_types import DownloadPlan, DownloadProblem, DownloadState, Outcome, Phase, Progress, RemoteFile
from engine.models.hub_client import client_settings
from engine.models.hub_paths import blob_path, hub_cache, lock_path, part_path, repository_folder
from engine.models.room import check_room
from engine.models.snapshots import content_path, is_intact, present_bytes, publish
from engine.models.staging import flush, write_problem
from engine.models.transfer import fetch

FILES_AT_ONCE = 4
DOWNLOADS_AT_ONCE = 3  # in one process; a further one waits for its turn
TICK_S = 0.2
SPEED_WINDOW_S = 5.0
_places = threading.BoundedSemaphore(DOWNLOADS_AT_ONCE)


class Downloader:
    """One run of a download. ``run`` blocks its thread; the events may be set from any other.

    ``folder`` None is the hub's own cache (HF_HOME and HF_HUB_CACHE count). ``token`` None takes the kept one. ``on_progress`` is
    called on the running thread, about five times a second. ``pause`` keeps what was fetched, ``cancel`` removes it; either acts
    within a second and leaves no thread behind.
    """

    def __init__(
        self,
        plan: DownloadPlan,
        folder: Path | None = None,
        token: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        pause: threading.Event | None = None,
        cancel: threading.Event | None = None,
    ):
        self._plan, self._cache, self._token = plan, folder or hub_cache(), token
        self._report = on_progress or (lambda progress: None)
        self._pause, self._cancel = pause or threading.Event(), cancel or threading.Event()
        self._stop = threading.Event()  # ends the checking of files, which happens on threads of the event loop
        self._have = {file: present_bytes(file, self._cache) for file in plan.files}
        self._notes: dict[RemoteFile, str] = {}
        self._file = ""
        self._phase: Phase = "waiting"
        self._speeds: deque[tuple[float, int]] = deque()

    def run(self) -> Outcome:
        """Fetches what is missing, checks every file and makes the models usable. Lost connections are taken up again by itself.

        Raises ``DownloadProblem``; what was fetched stays for the next run with the same plan, also after a kill. ``ModelError``
        where the download runs already.
        """
        try:
            lock = ledger.running_lock(self._plan.id)
            lock.acquire()
        except Timeout:
            raise ModelError(f"{self._plan.name} is being fetched already: wait for it, or stop it there.") from None
        try:
            return self._run()
        except OSError as error:
            raise DownloadProblem("disk", *write_problem(error, self._cache).rsplit(": ", 1)) from error
        finally:
            lock.release()

    def _run(self) -> Outcome:
        if not self._plan.files:
            return "done"
        ledger.keep(self._plan)
        check_room(self._plan, sum(self._have.values()), list_downloads(self._cache), self._cache)
        early = self._take_turn()
        outcome = asyncio.run(self._work()) if early is None else early
        if outcome == "done":
            publish(self._plan.files, self._cache)
            ledger.forget(self._plan.id)
        elif outcome == "cancelled":
            _remove(self._plan, self._cache)
        return outcome

    def _asked(self) -> Outcome | None:
        return "cancelled" if self._cancel.is_set() else "paused" if self._pause.is_set() else None

    def _take_turn(self) -> Outcome | None:
        """Waits for one of the places; returns early where that is no longer wanted."""
        while not _places.acquire(timeout=TICK_S):
            if outcome := self._asked():
                return outcome
            self._tell()
        return None

    async def _work(self) -> Outcome:
        try:
            async with httpx2.AsyncClient(**client_settings(self._token)) as client:
                places = asyncio.Semaphore(FILES_AT_ONCE)
                files = sorted(self._plan.files, key=lambda file: file.size)
                tasks = [asyncio.create_task(self._bring(client, file, places)) for file in files]
                try:
                    return await self._watch(tasks)
                finally:
                    self._stop.set()
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            _places.release()

    async def _watch(self, tasks: list[asyncio.Task]) -> Outcome:
        while True:
            self._tell()
            if outcome := self._asked():
                return outcome
            done, waiting = await asyncio.wait(tasks, timeout=TICK_S, return_when=asyncio.FIRST_EXCEPTION) if tasks else (set(), ())
            for task in done:
                task.result()
            if not waiting:
                self._tell()
                return "done"

    async def _bring(self, client: httpx2.AsyncClient, file: RemoteFile, places: asyncio.Semaphore) -> None:
        """One file: found whole, or fetched and checked, under the lock that the hub's own client takes for it."""
        async with places:
            lock = FileLock(lock_path(file, self._cache), timeout=0, mode=0o664)
            Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    lock.acquire()
                    break
                except Timeout:
                    self._note(file, "another program fetches the same file")
                    await asyncio.sleep(TICK_S)
            try:
                found = content_path(file, self._cache)
                if found is None or not await self._check(found, file):
                    await self._fetch_checked(client, file)
                self._moved(file, file.size)
                self._note(file, "")
            finally:
                lock.release()

    async def _fetch_checked(self, client: httpx2.AsyncClient, file: RemoteFile) -> None:
        part = part_path(file, self._cache)
        for attempt in range(2):  # a part of an interrupted run may hold anything, a whole fresh file should not
            await fetch(client, file, part, lambda have: self._moved(file, have), lambda note: self._note(file, note))
            if await self._check(part, file):
                await asyncio.to_thread(flush, part)
                os.replace(part, blob_path(file, self._cache))
                return
            part.unlink()
            self._note(file, f"{file.path} arrived damaged: fetching it again" if attempt == 0 else "")
        raise DownloadProblem(
            "hash", f"{file.path} arrived damaged twice", "try again later; if it stays so, use another network."
        )

    async def _check(self, path: Path, file: RemoteFile) -> bool:
        self._file, self._phase = file.path, "checking"
        return await asyncio.to_thread(is_intact, path, file, self._stop)

    def _moved(self, file: RemoteFile, have: int) -> None:
        self._have[file] = have
        self._file, self._phase = file.path, "downloading"

    def _note(self, file: RemoteFile, note: str) -> None:
        self._notes[file] = note

    def _tell(self) -> None:
        now, done = time.monotonic(), sum(self._have.values())
        self._speeds.append((now, done))
        while now - self._speeds[0][0] > SPEED_WINDOW_S:
            self._speeds.popleft()
        began, before = self._speeds[0]
        speed = max(0.0, (done - before) / (now - began)) if now > began else 0.0
        left = self._plan.total_bytes - done
        note = next((note for note in self._notes.values() if note), "")
        phase: Phase = "retrying" if note and speed == 0.0 else self._phase
        remaining_s = left / speed if speed > 0 else None
        self._report(Progress(done, self._plan.total_bytes, speed, remaining_s, self._file, phase, note))


def list_downloads(folder: Path | None = None) -> list[DownloadState]:
    """The downloads that are not finished, oldest first, also those of earlier runs of the program."""
    return [
        DownloadState(plan, sum(present_bytes(file, folder) for file in plan.files), ledger.is_running(plan.id))
        for plan in ledger.plans()
    ]


def discard(download_id: str, folder: Path | None = None) -> int:
    """Removes an unfinished download and returns the bytes that gave back. Nothing that another download or model uses is touched.

    Raises ``ModelError`` where it runs now.
    """
    plan = next((plan for plan in ledger.plans() if plan.id == download_id), None)
    if plan is None:
        return 0
    try:
        with ledger.running_lock(download_id):
            return _remove(plan, folder or hub_cache())
    except Timeout:
        raise ModelError(f"{plan.name} is being fetched now: stop it first.") from None


def _remove(plan: DownloadPlan, cache: Path) -> int:
    """What no snapshot links to and no other plan wants goes; the folders left empty with it."""
    wanted = {blob_path(file, cache) for other in ledger.plans() if other.id != plan.id for file in other.files}
    freed = 0
    for file in plan.files:
        blob, part = blob_path(file, cache), part_path(file, cache)
        if blob in wanted:
            continue
        linked = any(path.resolve() == blob.resolve() for path in repository_folder(file.repository, cache).glob("snapshots/*/*"))
        for path in (part,) if linked else (part, blob):
            if path.is_file():
                freed += path.stat().st_size
                path.unlink()
    for repository in {file.repository for file in plan.files}:
        for empty in (repository_folder(repository, cache) / "blobs", repository_folder(repository, cache)):
            if empty.is_dir() and not any(empty.iterdir()):
                empty.rmdir()
    ledger.forget(plan.id)
    return freed
