"""Puts a pair together: files, target, tokenizer, draft, engine. Runs on the thread that will own MLX."""

from __future__ import annotations

import logging
import os
import platform
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import load_tokenizer

from engine.bench.environment import processor
from engine.decoding.controller import Controller
from engine.decoding.costs import cached_costs, measure_costs
from engine.decoding.exactness import WIDEST, Exactness
from engine.decoding.odds import LookupOdds
from engine.draft_check import kept_first_guesses
from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.drafters.lookup import LookupDrafter
from engine.drafters.protocol import Drafter
from engine.engine import Engine
from engine.errors import Cancelled, ModelError, RequestError
from engine.events import LoadProgress, Mode
from engine.info import Learned, PairInfo
from engine.kernels.blas import blas_version, use_fast_blas
from engine.learned import LearnedDrafts
from engine.learning import Learner
from engine.memory import limit_cache
from engine.models import ResolvedPair, resolve_pair
from engine.models.checkpoint import weight_files
from engine.models.fit import check_memory
from engine.models.paths import cache_folder
from engine.models.starter import ensure_starter
from engine.options import LoadOptions
from engine.prefill.chunk_size import kept_chunk, measure_chunk
from engine.prefix.cache import PrefixCache
from engine.prefix.opening import open_prefix_cache
from engine.targets.loading import load_target
from engine.targets.protocol import Target
from engine.text.chat import stop_token_ids, thinking_switch

log = logging.getLogger(__name__)


def load(
    pair: str,
    progress: Callable[[LoadProgress], None] | None = None,
    cancel: threading.Event | None = None,
    options: LoadOptions | None = None,
) -> Engine:
    """See ``engine.load``."""
    options = options or LoadOptions()
    report = _Reporter(progress, cancel)
    resolved = ensure_starter(progress, cancel) if pair == "starter" else resolve_pair(pair)
    on_cpu = mx.default_device() == mx.cpu
    check_memory(resolved, expanded=on_cpu, options=options)
    report("Loading the target", 0.1)
    dtype = mx.float32 if on_cpu else None  # quantised and bf16 products are slow on the CPU
    limit_cache()
    target = load_target(resolved.target, dtype, options.kv_bits, lambda part: report("Loading the target", 0.1 + 0.5 * part))
    report("Loading the tokenizer", 0.6)
    tokenizer = read_tokenizer(resolved.target)
    return _assemble(_Parts(resolved, target, tokenizer, dtype, options), report)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What stays in memory when the draft is exchanged; ``pair`` is the pair with its own draft."""

    pair: ResolvedPair
    target: Target
    tokenizer: Any
    dtype: mx.Dtype | None
    options: LoadOptions

    def draft(self, folder: Path) -> DFlashDrafter:
        """The draft in ``folder``. Raises ``ModelError``."""
        model = load_draft(folder, self.target.shape, self.dtype, self.options.draft_bits)
        return DFlashDrafter(model, self.target, folder.name, self.pair.block_length or model.convention.block_length)


@dataclass(frozen=True, slots=True)
class _Found:
    """``pair`` with the draft in use, ``drafters`` by mode, and what is told of them: ``reason`` why there is no draft."""

    pair: ResolvedPair
    drafters: dict[Mode, Drafter]
    learned: Learned | None = None
    reason: str | None = None
    notices: tuple[str, ...] = ()


def _find_draft(parts: _Parts, report: _Reporter) -> _Found:
    """The drafters of a loaded target; a learned draft that cannot be used gives way to the pair's own, with a notice."""
    pair, target, options = parts.pair, parts.target, parts.options
    drafters: dict[Mode, Drafter] = {"lookup": LookupDrafter()} if target.capabilities.rollback else {}
    reason = target.capabilities.reason
    refuse_draft_bits(pair, options)
    if pair.draft is None:
        return _Found(pair, drafters, reason=reason or "this model has no draft")
    if not (target.capabilities.taps and target.capabilities.rollback):
        return _Found(pair, drafters, reason=reason)
    report("Loading the draft", 0.8)
    drafts = LearnedDrafts(pair)
    folder, learned = (drafts.draft(), drafts.read()) if options.learned else (None, None)
    try:
        chosen = folder or pair.draft
        return _Found(replace(pair, draft=chosen), drafters | {"dflash": parts.draft(chosen)}, learned, reason)
    except ModelError as error:
        if folder is None:
            raise
        notice = f"The draft learned from your chats cannot be used, so the pair's own is ({error})"
        return _Found(pair, drafters | {"dflash": parts.draft(pair.draft)}, None, reason, (notice,))


def refuse_draft_bits(pair: ResolvedPair, options: LoadOptions) -> None:
    """Raises ``ModelError`` where there is no draft whose weights could be quantised."""
    if pair.draft is None and options.draft_bits is not None:
        raise ModelError(f"{pair.name} has no draft to keep in {options.draft_bits} bits: load it without draft_bits.")


def _controllers(
    pair: ResolvedPair, target: Target, drafters: dict[Mode, Drafter], options: LoadOptions, report: _Reporter
) -> tuple[dict[Mode, Controller], Exactness | None]:
    """One controller a drafter, from this machine's costs, and the probe of exact widths; nothing where nothing is proposed."""
    if not drafters:
        return {}, None
    report("Measuring this machine", 0.9)
    drafter, folder = drafters.get("dflash"), cache_folder() / "costs"
    block = drafter.block_length if drafter else 1
    costs = cached_costs(folder, cost_identity(pair, block, options), lambda: measure_costs(target, drafter))
    odds = LookupOdds()  # what repeats itself does so whoever proposes
    widest = max(block, WIDEST)
    exactness = Exactness(target, widest, folder, cost_identity(pair, widest, options))
    return {mode: Controller(costs, block if mode == "dflash" else 1, odds) for mode in drafters}, exactness


def _doubts(found: _Found, target: Target, tokenizer: Any, options: LoadOptions, report: _Reporter) -> tuple[str, ...]:
    """A notice where the draft in use guesses implausibly badly: nothing else tells that it is read wrongly."""
    draft, folder = found.drafters.get("dflash"), found.pair.draft
    if not isinstance(draft, DFlashDrafter) or folder is None:
        return ()
    report("Checking the draft", 0.93)
    files = [f"{file} {file.stat().st_mtime_ns}" for file in weight_files(folder)]  # another draft may have the same sizes
    identity = [*cost_identity(found.pair, draft.block_length, options), repr(draft.model.convention), *files]
    try:
        notice = kept_first_guesses(cache_folder() / "costs", identity, target, tokenizer, draft, report.cancel).notice
    except ModelError as error:  # a template or a model that fails here fails when it is asked, and says so there
        log.warning("the draft was not checked: %s", error)
        return ()
    return () if notice is None else (notice,)


def _assemble(parts: _Parts, report: _Reporter) -> Engine:
    """The engine around a loaded target, with the draft learned from the user's chats where that is wanted and there is one."""
    target, tokenizer, options = parts.target, parts.tokenizer, parts.options
    found = _find_draft(parts, report)
    resolved, drafters = found.pair, found.drafters
    controllers, exactness = _controllers(resolved, target, drafters, options, report)
    doubts = _doubts(found, target, tokenizer, options, report)
    report("Measuring this machine", 0.95)
    chunk = kept_chunk(cache_folder() / "costs", cost_identity(resolved, 0, options), lambda: measure_chunk(target))
    info = replace(
        _info(resolved, target, drafters, found.reason, options),
        exact_widths=exactness.widths if exactness else (),
        notices=missing_parts(resolved.target, tokenizer) + found.notices + doubts,
        learned=found.learned,
        costs=next((controller.costs for controller in controllers.values()), None),
        thinking_switch=thinking_switch(tokenizer),
    )
    prefix = _prefix_cache(resolved, target, drafters.get("dflash"), chunk, parts.dtype, options, report)
    stop_ids = stop_token_ids(resolved.target, tokenizer)
    report("Ready", 1.0)
    return Engine(
        target=target,
        tokenizer=tokenizer,
        drafters=drafters,
        stop_ids=stop_ids,
        info=info,
        controllers=controllers,
        chunk=chunk,
        exactness=exactness,
        prefix=prefix,
        learner=Learner(parts.pair, resolved.draft if "dflash" in drafters else None, target, tokenizer, stop_ids),
        reassemble=lambda: _assemble(replace(parts, options=replace(options, learned=True)), _Reporter(None, None)),
    )


def _prefix_cache(
    resolved: ResolvedPair,
    target: Target,
    draft: Drafter | None,
    chunk: int,
    dtype: mx.Dtype | None,
    options: LoadOptions,
    report: _Reporter,
) -> PrefixCache | None:
    report("Opening the prefix cache", 0.97)
    folders = [folder for folder in (resolved.target, resolved.draft) if folder is not None]
    settings = [*machine_identity(), version("mlx-lm"), str(dtype), *options.identity()]
    return open_prefix_cache(target, draft, chunk, folders, settings, options, cache_folder() / "prefix", report.cancel)


class _Reporter:
    def __init__(self, progress: Callable[[LoadProgress], None] | None, cancel: threading.Event | None):
        self._progress, self.cancel = progress, cancel

    def __call__(self, stage: str, fraction: float) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled("Loading was cancelled: nothing was loaded.")
        if self._progress is not None:
            self._progress(LoadProgress(stage, fraction))


def read_tokenizer(folder: Path) -> Any:
    """mlx-lm's tokenizer of the model in ``folder``. Raises ``ModelError``."""
    try:
        tokenizer = load_tokenizer(folder, {"trust_remote_code": False})  # unsaid, transformers asks on the terminal, or of a pipe
        tokenizer.encode("1")  # turns off the cutting its file may ask for; then calls change nothing and threads may share it
        return tokenizer
    except Exception as error:  # transformers raises many kinds for a broken tokenizer file
        if "trust_remote_code" in str(error):
            what = f"{folder} needs program code of its own (tokenizer_config.json), which is not run here"
            raise ModelError(f"{what}: choose another conversion of the model.") from error
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ModelError(f"The tokenizer in {folder} cannot be read ({line}): download the model again.") from error


def missing_parts(folder: Path, tokenizer: Any) -> tuple[str, ...]:
    """What is missing from the target's files and cannot be seen from an answer, in words for the user."""
    if tokenizer.has_chat_template:
        return ()
    bare = "This model has no chat template, so it is given the bare text"
    if (folder / "tokenizer_config.json").exists():
        return (f"{bare}: choose a model that is trained to chat where an answer is wanted.",)
    return (f"{bare}: its tokenizer_config.json is missing, download the model again.",)


def _info(resolved: ResolvedPair, target: Any, drafters: dict[Mode, Drafter], reason: str | None, options: LoadOptions) -> PairInfo:
    draft = drafters.get("dflash")
    models = [target.model] + ([draft.model] if isinstance(draft, DFlashDrafter) else [])
    weights = [array for model in models for _, array in tree_flatten(model.parameters())]
    return PairInfo(
        id=resolved.id,
        name=resolved.name,
        family=target.family,
        device=_device(),
        dtype=_number_format(models),
        context_length=target.shape.context_length,
        draft_name=draft.name if draft else None,
        block_length=draft.block_length if draft else 0,
        no_draft_reason=None if draft else reason,
        weights_bytes=sum(array.nbytes for array in weights),
        kv_bits=options.kv_bits,
        draft_bits=options.draft_bits if draft else None,
        draft_context_length=_draft_context(draft, target.shape.context_length),
        reads_in_part=_reads_in_part(target),
    )


def _reads_in_part(target: Target) -> bool:
    try:
        target.make_sparse_cache()
    except RequestError:
        return False
    return True


def _number_format(models: Sequence[nn.Module]) -> str:
    """What most bytes of the weights are: a type of numbers, or so many bits a value where they are quantised."""
    found: Counter[str] = Counter()
    for module in (module for model in models for module in model.modules()):
        for array in module.values():
            if isinstance(array, mx.array):
                name = f"{module.bits}-bit" if "scales" in module else str(array.dtype).removeprefix("mlx.core.")
                found[name] += array.nbytes
    return found.most_common(1)[0][0]


def _draft_context(draft: Drafter | None, longest: int) -> int | None:
    """How many tokens before a block the draft can see; a draft with a window in every layer sees no more than the widest."""
    if not isinstance(draft, DFlashDrafter):
        return None
    reach = draft.model.make_context().reach
    return longest if reach is None else min(longest, reach)


def cost_identity(pair: ResolvedPair, block_length: int, options: LoadOptions) -> list[str]:
    """What measured costs belong to: machine, versions, the two models and how they are loaded."""
    folders = [folder for folder in (pair.target, pair.draft) if folder is not None]
    configs = [(folder / "config.json").read_text(encoding="utf-8") for folder in folders]
    sizes = [str(file.stat().st_size) for folder in folders for file in weight_files(folder)]
    return [*machine_identity(), str(block_length), *configs, *sizes, *options.identity()]


def machine_identity() -> list[str]:
    """What times and last bits depend on beside the models."""
    blas = [os.environ.get(name, "") for name in ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS")]
    release = platform.mac_ver()[0]  # MLX picks other kernels on newer systems; "" elsewhere
    return [processor(), str(os.cpu_count()), _device(), *blas, blas_version(), version("mlx"), *([release] if release else [])]


def _device() -> str:
    if mx.default_device() == mx.cpu:
        fast = use_fast_blas()
        return "CPU" if fast is None else "CPU (OpenBLAS)" if fast else "CPU (reference BLAS: slow, install libopenblas0-pthread)"
    return str(mx.device_info().get("device_name", "GPU"))
