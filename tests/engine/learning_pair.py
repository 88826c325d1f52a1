"""A pair with something to learn: the small trained hybrid target with its draft spoiled, and questions to ask it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mlx.core as mx

from engine import Message
from engine.training.settings import TrainingSettings

PAIR = Path(__file__).parent / "hybrid_pair"
QUESTIONS: list[str] = json.loads((Path(__file__).parents[2] / "packaging/hybrid_pair/heldout.json").read_text("utf-8"))
CHATS = tuple((Message("user", question),) for question in QUESTIONS[4:])
SPOILED = 0.3  # of each matrix' own spread
TEACHES = TrainingSettings(
    steps=16, rows=2, slots=96, rate=1e-3, warm_up=2, evaluate_every=8, held_out=4, max_length=72, optimizer="adamw"
)


def write_spoiled_pair(folder: Path) -> str:
    """Writes the pair to ``folder`` and returns its name. The target stays where it is."""
    draft = folder / "draft"
    shutil.copytree(PAIR / "draft", draft)
    weights = mx.load(str(draft / "model.safetensors"))
    assert isinstance(weights, dict)
    mx.random.seed(0)
    for name, value in weights.items():
        if value.ndim == 2:
            noise = mx.random.normal(value.shape) * mx.std(value.astype(mx.float32))
            weights[name] = (value + SPOILED * noise).astype(value.dtype)
    mx.save_safetensors(str(draft / "model.safetensors"), weights, {"format": "mlx"})
    return f"{PAIR / 'target'}+{draft}"
