"""Writes a pair's weights, dequantised, as folders that any mlx-lm based program reads.

    python -m tests.perf.expanded_pair TARGET DRAFT FOLDER [float32|bfloat16]

FOLDER/target, FOLDER/draft (proposes from the whole vocabulary) and FOLDER/reduced (from the draft's own part of it).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")


def write_expanded(target: Path, draft: Path, folder: Path, dtype: str = "float32") -> None:
    """Fills ``folder``; ``dtype`` names an MLX type."""
    import mlx.core as mx  # not at the top: the engine opens the fast BLAS before MLX is there
    from mlx.utils import tree_flatten

    from engine.drafters.dflash.loading import load_draft
    from engine.targets.loading import load_target

    kind = getattr(mx, dtype)
    loaded = load_target(target, kind)
    proposer = load_draft(draft, loaded.shape, kind)
    for name, source, model in (("target", target, loaded.model), ("draft", draft, proposer), ("reduced", draft, proposer)):  # type: ignore[attr-defined]
        left_out = {"quantization"} if name == "reduced" else {"quantization", "draft_vocab_size"}
        weights = dict(tree_flatten(model.parameters()))
        if name == "draft":
            weights.pop("d2t", None)
        place = folder / name
        place.mkdir(parents=True)
        mx.save_safetensors(str(place / "model.safetensors"), weights, {"format": "mlx"})
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
        config = {key: value for key, value in config.items() if key not in left_out} | {"torch_dtype": dtype}
        (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for name in TOKENIZER:
        if (target / name).exists():
            (folder / "target" / name).write_bytes((target / name).read_bytes())


if __name__ == "__main__":
    import engine  # noqa: F401  opens the fast BLAS

    write_expanded(*(Path(argument) for argument in sys.argv[1:4]), *sys.argv[4:5])
