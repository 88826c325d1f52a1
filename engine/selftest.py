"""Does this installation work? A handful of checks on the real starter pair, each with a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from engine import Finished, GenerationRequest, Message, compare_tokens, identity_reason, load
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
    checks: list[dict[str, Any]] = []
    engine: list[Engine] = []
    answers: dict[str, Finished] = {}

    def loads() -> str:
        if device is not None:
            _use_device(device)
        engine.append(load("starter"))
        return f"{engine[0].info.name} on {engine[0].info.device}"

    def loaded() -> Engine:
        if not engine:
            raise SlipstreamError("not run, because the pair did not load")
        return engine[0]

    def answer(mode: Any) -> Callable[[], str]:
        def check() -> str:
            *_, last = loaded().generate(GenerationRequest.of(PROMPT, mode=mode, max_tokens=MAX_TOKENS, use_cache=False))
            assert isinstance(last, Finished)
            if last.statistics.mode != mode or not last.text.strip():
                raise SlipstreamError(f"answered {last.text!r} in mode {last.statistics.mode}")
            answers[mode] = last
            return f"{last.statistics.completion_tokens} tokens, {last.statistics.decode_tok_s:.1f} tokens/s"

        return check

    def identical() -> str:
        if len(answers) < 2:
            raise SlipstreamError("not run, because there are no two texts")
        plain = answers["baseline"].token_ids
        verdict = compare_tokens(plain, answers["dflash"].token_ids)
        if verdict.first_difference is None:
            return f"{verdict.compared} tokens compared"
        prompt = loaded().encode([Message("user", PROMPT)])
        margin = loaded().top2_margin([*prompt, *plain[: verdict.first_difference]])
        if not is_near_tie(margin, loaded().info):
            raise SlipstreamError(f"the texts differ from token {verdict.first_difference}, at a margin of {margin:.2g} logits")
        return identity_reason(verdict, loaded().info, margin)  # as 16-bit and quantised numbers round on a GPU

    def serves() -> str:
        from engine.server.selfcheck import check_server

        return check_server(loaded())

    for name, check in (
        *before,
        ("data folder is writable", _data_folder_writable),
        ("starter pair loads", loads),
        ("plain decoding answers", answer("baseline")),
        ("DFlash answers", answer("dflash")),
        ("both texts are identical", identical),
        ("the server answers", serves),
        *after,
    ):
        checks.append(_outcome(name, check))
    return {"ok": all(check["ok"] for check in checks), "checks": checks}


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
