"""Does this installation work? A handful of checks on the real starter pair, each with a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from engine import Finished, GenerationRequest, Message, Mode, compare_tokens, identity_reason, load
from engine.errors import SlipstreamError
from engine.models.paths import data_folder
from engine.verdict import is_near_tie

if TYPE_CHECKING:  # MLX must not be imported before load() has opened the fast BLAS
    from engine.engine import Engine

PROMPT = "Write a Python function that checks whether a string is a palindrome."
MAX_TOKENS = 48

Check = tuple[str, Callable[[], str]]  # its name, and what returns a detail or raises


def run_selftest(before: Sequence[Check] = (), after: Sequence[Check] = (), device: str | None = None) -> dict[str, Any]:
    """{"ok", "checks": [{"name", "ok", "detail", "seconds"}]}. A failed check does not stop those after it.

    ``before`` and ``after`` are done around the engine's own. ``device`` "cpu" or "gpu" overrides MLX's choice.
    """
    pair = _StarterPair(device)
    todo: list[Check] = [
        *before,
        ("data folder is writable", _data_folder_writable),
        ("starter pair loads", pair.loads),
        ("plain decoding answers", partial(pair.answers, "baseline")),
        ("DFlash answers", partial(pair.answers, "dflash")),
        ("both texts are identical", pair.identical),
        ("the server answers", pair.serves),
        *after,
    ]
    checks = [_outcome(name, check) for name, check in todo]
    return {"ok": all(check["ok"] for check in checks), "checks": checks}


class _StarterPair:
    """The checks of the starter pair: those after ``loads`` need what it loaded."""

    def __init__(self, device: str | None):
        self._device = device
        self._loaded: Engine | None = None
        self._answers: dict[Mode, Finished] = {}

    @property
    def _engine(self) -> Engine:
        if self._loaded is None:
            raise SlipstreamError("not run, because the pair did not load")
        return self._loaded

    def loads(self) -> str:
        if self._device is not None:
            _use_device(self._device)
        self._loaded = load("starter")
        return f"{self._loaded.info.name} on {self._loaded.info.device}"

    def answers(self, mode: Mode) -> str:
        *_, last = self._engine.generate(GenerationRequest.of(PROMPT, mode=mode, max_tokens=MAX_TOKENS, use_cache=False))
        assert isinstance(last, Finished)
        if last.statistics.mode != mode or not last.text.strip():
            raise SlipstreamError(f"answered {last.text!r} in mode {last.statistics.mode}")
        self._answers[mode] = last
        return f"{last.statistics.completion_tokens} tokens, {last.statistics.decode_tok_s:.1f} tokens/s"

    def identical(self) -> str:
        if len(self._answers) < 2:
            raise SlipstreamError("not run, because there are no two texts")
        plain = self._answers["baseline"].token_ids
        verdict = compare_tokens(plain, self._answers["dflash"].token_ids)
        if verdict.first_difference is None:
            return f"{verdict.compared} tokens compared"
        prompt = self._engine.encode([Message("user", PROMPT)])
        margin = self._engine.top2_margin([*prompt, *plain[: verdict.first_difference]])
        if not is_near_tie(margin, self._engine.info):
            raise SlipstreamError(f"the texts differ from token {verdict.first_difference}, at a margin of {margin:.2g} logits")
        return identity_reason(verdict, self._engine.info, margin)  # as 16-bit and quantised numbers round on a GPU

    def serves(self) -> str:
        from engine.server.selfcheck import check_server

        return check_server(self._engine)


def _use_device(name: str) -> None:
    import mlx.core as mx

    mx.set_default_device(mx.cpu if name == "cpu" else mx.gpu)
    if name == "cpu":
        mx.disable_compile()  # on the CPU it calls a C++ compiler, which a user's Mac does not have


def _outcome(name: str, check: Callable[[], str]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        ok, detail = True, check()
    except Exception as error:  # the report must be complete whatever breaks
        ok, detail = False, str(error) or type(error).__name__
    return {"name": name, "ok": ok, "detail": detail, "seconds": time.perf_counter() - start}


def _data_folder_writable() -> str:
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / ".selftest"
    probe.write_text("ok", encoding="utf-8")
    probe.unlink()
    return str(folder)
