"""Numbers of a draft that cannot be: what no tensor's shape would contradict, or only with a riddle for a message."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.models.checkpoint import Config

if TYPE_CHECKING:
    from engine.drafters.dflash.convention import DraftConvention

Shapes = dict[str, tuple[int, ...]]
MOST_SLOTS = 1024  # far above any trained block


def check_numbers(convention: DraftConvention, config: Config) -> None:
    """Raises ``ModelError`` for a size or a constant that no draft can have."""
    c = convention
    problem = None
    if not 2 <= c.block_length <= MOST_SLOTS:
        proposed = "leaves no slot to propose in" if c.block_length < 2 else f"passes {MOST_SLOTS}"
        problem = f"block_size is {c.block_length - 1 + c.first_slot}, which {proposed}"
    elif min(c.num_layers, c.num_heads, c.num_kv_heads, c.intermediate_size) < 1 or c.num_heads % c.num_kv_heads:
        problem = f"{c.num_heads} attention heads over {c.num_kv_heads} key/value heads in {c.num_layers} layers cannot be"
    elif min(c.target_hidden_size, c.vocab_size) < 1:
        problem = f"target_hidden_size {c.target_hidden_size} and vocab_size {c.vocab_size} cannot be"
    elif any(window is not None and window < 1 for window in c.windows):
        problem = "sliding_window is below 1"
    elif c.convolution and (min(c.convolution) < 1 or c.hidden_size % c.convolution[1]):
        problem = f"conv_kernel_size {c.convolution[0]} and conv_group_size {c.convolution[1]} cannot be at width {c.hidden_size}"
    elif c.selector and (c.selector.rank < 1 or not 1 <= c.selector.top_k <= c.vocab_size):
        problem = f"selector_rank {c.selector.rank} and selector_top_k {c.selector.top_k} cannot be"
    problem = problem or _impossible_real(c)
    if problem:
        raise ModelError(f"{config.path}: {problem}: download the draft again.")


def _impossible_real(convention: DraftConvention) -> str | None:
    """JSON may hold NaN and infinity, and Python reads them."""
    selector = convention.selector
    reals = {"rms_norm_eps": convention.norm_eps, "rope_theta": convention.rope_theta,
             "input_embedding_scale": convention.embedding_scale}  # fmt: skip
    if selector is not None:
        reals |= {"output_multiplier": selector.multiplier, "final_logit_softcapping": selector.softcap or 1.0}
    wrong = next((name for name, value in reals.items() if not 0 < value < math.inf), None)
    return f"{wrong} is {reals[wrong]}, which cannot be" if wrong else None


def check_vocabulary(convention: DraftConvention, config: Config) -> None:
    """An embedding covers the vocabulary, a head covers what is proposed."""
    c = convention
    problem = None
    if c.embedding_rows is not None and c.embedding_rows < c.vocab_size:
        problem = f"its embedding has {c.embedding_rows:,} rows for a vocabulary of {c.vocab_size:,}"
    elif c.head_rows is not None and c.draft_vocab_size is not None and c.head_rows != c.draft_vocab_size:
        problem = f"its head has {c.head_rows:,} rows and d2t names {c.draft_vocab_size:,} tokens"
    elif c.head_rows is not None and c.draft_vocab_size is None and c.head_rows < c.vocab_size:
        problem = f"its head has {c.head_rows:,} rows for a vocabulary of {c.vocab_size:,} and no d2t names their tokens"
    elif c.selector is not None and c.draft_vocab_size is not None:
        raise ModelError(f"{config.path.parent} selects from a reduced vocabulary, which is not supported: choose another draft.")
    if problem:
        raise ModelError(f"{config.path.parent}: {problem}: download the draft again.")


def check_taps(convention: DraftConvention, shapes: Shapes, config: Config) -> None:
    """Packed weights are left to the loader: their columns are not features."""
    shape = shapes.get("fc.weight")
    if shape is None or len(shape) != 2 or "fc.scales" in shapes:
        return
    taps, rest = divmod(shape[1], convention.target_hidden_size)
    if taps != len(convention.taps) and not rest:
        named = f"target_layer_ids names {len(convention.taps)} taps and fc.weight reads {taps}"
        raise ModelError(f"{config.path}: {named}: the config belongs to another draft, download it again.")
