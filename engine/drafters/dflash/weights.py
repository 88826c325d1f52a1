"""The tensors of a draft checkpoint under the names the model gives them, whatever packaging they came in."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx

from engine.drafters.dflash.convention import ALLOWED, REDUCED, DraftConvention
from engine.errors import ModelError
from engine.models.checkpoint import weight_files

Weights = dict[str, mx.array]
# What training leaves behind and no forward pass reads: the target's own norm and head, RoPE's constants.
UNUSED = ("verifier_norm.", "verifier_lm_head.")
UNUSED_END = ".rotary_emb.inv_freq"
CODEBOOKS = ("candidate_selector.predecessor_codebook", "candidate_selector.successor_codebook")
FUSED = ".qkv_proj."


def read_weights(folder: Path, convention: DraftConvention) -> Weights:
    """All tensors of the draft in ``folder``, lazily; ``ModelError`` where one contradicts another or cannot be read."""
    weights: Weights = {}
    for file in weight_files(folder):
        try:
            weights |= mx.load(str(file))  # type: ignore[arg-type]
        except RuntimeError as error:  # a number format MLX does not know
            raise ModelError(f"{file} cannot be read ({error}): use a draft in bf16, fp16 or fp32.") from error
    named: Weights = {}
    for name, value in weights.items():
        if name.startswith(UNUSED) or name.endswith(UNUSED_END):
            continue
        if FUSED in name:
            named |= _split(name, value, convention, folder)
        else:
            named[f"{name}.weight" if name in CODEBOOKS else name] = value
    _settle_vocabulary(named, convention, folder)
    return named


def _split(name: str, value: mx.array, convention: DraftConvention, folder: Path) -> Weights:
    """Rows of a fused projection are the queries', then the keys', then the values'; packed weights have the same rows."""
    queries, keys = convention.num_heads * convention.head_dim, convention.num_kv_heads * convention.head_dim
    if not value.ndim or value.shape[0] != queries + 2 * keys:
        raise ModelError(f"The draft in {folder} has a tensor of the wrong shape ({name} {value.shape}): download it again.")
    parts = mx.split(value, [queries, queries + keys], axis=0)
    return {name.replace(FUSED, f".{part}_proj."): piece for part, piece in zip("qkv", parts, strict=True)}


def _settle_vocabulary(weights: Weights, convention: DraftConvention, folder: Path) -> None:
    """Leaves ``d2t`` where the vocabulary is reduced, checked against ``t2d``; both say the same and only one is needed."""
    offsets, allowed = weights.get(REDUCED), weights.pop(ALLOWED, None)
    if offsets is None:
        return
    if not mx.issubdtype(offsets.dtype, mx.integer):
        raise ModelError(f"The draft in {folder} has a {REDUCED} that is not whole numbers: download it again.")
    ids = mx.arange(offsets.shape[0]) + offsets
    in_range = (ids >= 0).all() & (ids < convention.vocab_size).all()
    if not (in_range & (ids[1:] > ids[:-1]).all()).item():
        raise ModelError(f"The draft in {folder} names tokens outside the target's vocabulary ({REDUCED}): download it again.")
    if allowed is not None:
        named = allowed.astype(mx.bool_)
        if named.shape != (convention.vocab_size,) or not (named[ids].all() & (named.sum() == ids.size)).item():
            raise ModelError(f"The draft in {folder} names other tokens in {ALLOWED} than in {REDUCED}: download it again.")
    if convention.draft_vocab_size is None:  # in range, ascending and as many as there are: every token in its own place
        del weights[REDUCED]
