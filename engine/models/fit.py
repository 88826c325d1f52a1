"""Says whether a model fits this machine's memory: weights and caches at a context against what models may use."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from engine.errors import ModelError, NotEnoughMemory
from engine.models.catalog import CatalogPair, read_catalog, resolve_pair
from engine.models.checkpoint import Config, weight_files
from engine.models.entries import ResolvedPair
from engine.models.memory_need import memory_need
from engine.models.room import gigabytes
from engine.models.runnable import folder_problem
from engine.models.starter import STARTER_ID, find_starter
from engine.models.store_types import Fit, HubModel, InstalledModel, MemoryNeed
from engine.options import LoadOptions
from engine.sysctl import system_number

DEFAULT_CONTEXT = 8192
TIGHT = 0.85  # of what models may use; above it other programs feel it
SHORTEST_CONTEXT = 1024
STORED_BITS = {"4-bit": 4.5, "8-bit": 8.5, "MXFP4": 4.25}  # a value, with the scales of its group
GUESSED_CACHES = 0.15  # of the weights, where only their size is known


def machine_memory() -> int:
    """Bytes that models may use here: on a Mac what the GPU may take of the shared memory, elsewhere most of it."""
    import psutil

    total = psutil.virtual_memory().total
    if sys.platform == "darwin":
        allowed = system_number("iogpu.wired_limit_mb")  # 0 unless its owner set it
        if allowed:
            return min(allowed * 2**20, total)
        return total * 3 // 4 if total >= 36 * 2**30 else total * 2 // 3
    return total * 17 // 20


def on_cpu() -> bool:
    """Whether models run on the CPU here, where every value takes four bytes. By what is installed: MLX is not imported."""
    try:
        return sys.platform != "darwin" and bool(version("mlx-cpu"))
    except PackageNotFoundError:
        return False


def fits(
    model: str | InstalledModel | HubModel,
    context: int = DEFAULT_CONTEXT,
    memory_bytes: int | None = None,
    kv_bits: int | None = None,
) -> Fit | None:
    """Whether ``model`` (a catalog id, ``TARGET[+DRAFT]``, or what a list gave) runs with ``context`` tokens in the caches.

    ``memory_bytes`` None asks this machine. ``kv_bits`` counts for models that are here. None where sizes are unknown. Never asks
    the network. For a model that is not here and not in the catalog only the weights' size is known, so the caches are guessed.
    """
    need = _need(model, kv_bits)
    return None if need is None else judge(need, context, machine_memory() if memory_bytes is None else memory_bytes)


def check_memory(pair: ResolvedPair, expanded: bool, options: LoadOptions) -> None:
    """Raises ``NotEnoughMemory`` where the pair cannot fit with ``options.context_tokens`` in its caches.

    ``expanded``: weights and caches are fp32, as on the CPU. A pair whose files cannot be read passes: loading says why.
    """
    if options.memory_bytes == 0:
        return
    available = machine_memory() if options.memory_bytes is None else options.memory_bytes
    try:
        need = memory_need(pair.target, pair.draft, expanded, options.kv_bits)
    except ModelError:
        return
    context = min(options.context_tokens, need.longest) if need.longest else options.context_tokens
    if need.at(context) > available:
        raise NotEnoughMemory(pair.name, context, need.at(context), available)


def check_pair(pair: str, options: LoadOptions | None = None) -> None:
    """Raises ``ModelError`` where ``pair`` is not on this machine, its files are damaged or cut short, its kind does not run here,
    or it cannot fit the memory.

    By config.json and headers alone, so it takes no time. A starter not set up yet passes.
    """
    if pair == STARTER_ID and find_starter() is None:
        return
    resolved = resolve_pair(pair)
    for folder in (resolved.target, resolved.draft):
        if folder is not None:
            Config.read(folder)
            weight_files(folder)
    if (problem := folder_problem(resolved.target)) is not None:  # before the memory: a smaller model of its kind would not help
        raise ModelError(problem)
    check_memory(resolved, on_cpu(), options or LoadOptions())


def judge(need: MemoryNeed, context: int, memory_bytes: int) -> Fit:
    """``need`` at ``context`` tokens against ``memory_bytes``, in words."""
    context = min(context, need.longest) if need.longest else context
    needed = need.at(context)
    if needed <= TIGHT * memory_bytes:
        return Fit(needed, memory_bytes, "fits", f"fits with {context:,} tokens of context ({gigabytes(needed)})")
    if needed <= memory_bytes:
        words = f"fits barely with {context:,} tokens of context ({gigabytes(needed)}): close other programs first"
        return Fit(needed, memory_bytes, "tight", words)
    room = memory_bytes - need.at(0)
    shorter = room // need.per_token // SHORTEST_CONTEXT * SHORTEST_CONTEXT if need.per_token and room > 0 else 0
    if shorter >= SHORTEST_CONTEXT:
        return Fit(needed, memory_bytes, "tight", f"fits with up to {min(shorter, context):,} tokens of context, not {context:,}")
    words = f"needs {gigabytes(needed)}, and models may use {gigabytes(memory_bytes)} here"
    return Fit(needed, memory_bytes, "no", words)


def _need(model: str | InstalledModel | HubModel, kv_bits: int | None) -> MemoryNeed | None:
    pairs = {pair.id: pair for pair in read_catalog()}
    if isinstance(model, HubModel):
        listed = next((pair for pair in pairs.values() if pair.target == model.repository), None)
        return (_listed(listed) if listed else None) or _guessed(model.size_bytes)
    if isinstance(model, InstalledModel):
        if model.path.is_file():
            return _guessed(model.bytes)
        model = str(model.path)
    try:
        pair = resolve_pair(model)
        return memory_need(pair.target, pair.draft, on_cpu(), kv_bits)
    except ModelError:
        return _listed(pairs[model]) if model in pairs else None


def _listed(pair: CatalogPair) -> MemoryNeed | None:
    size = pair.weights_bytes
    if size is None or pair.per_token_bytes is None:
        return None
    wider = round(32 / STORED_BITS.get(pair.precision, 16)) if on_cpu() else 1
    per_token, state = pair.per_token_bytes, pair.state_bytes or 0
    if wider > 1:
        size, per_token, state = size * wider, 2 * per_token, 2 * state
    return MemoryNeed(size, per_token, state, pair.context_length or 0)


def _guessed(size: int | None) -> MemoryNeed | None:
    return None if size is None else MemoryNeed(size, 0, round(GUESSED_CACHES * size))
