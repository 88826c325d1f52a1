"""The imported starter target answers sensibly through mlx-lm alone, without any of our engine."""

from __future__ import annotations

from mlx_lm import stream_generate
from mlx_lm.utils import load_model, load_tokenizer

from engine.models import ResolvedPair


def test_mlx_lm_continues_a_chat_with_the_imported_model(starter: ResolvedPair) -> None:
    model, config = load_model(starter.target)
    tokenizer = load_tokenizer(starter.target)
    assert (config["quantization"]["bits"], config["quantization"]["model.embed_tokens"]["bits"]) == (4, 8)
    turns = [
        ("user", "What is the capital of France?"),
        ("assistant", "The capital of France is Paris."),
        ("user", "And of Italy? Answer in one sentence."),
    ]
    prompt = tokenizer.apply_chat_template(
        [{"role": role, "content": text} for role, text in turns], add_generation_prompt=True
    )
    steps = list(stream_generate(model, tokenizer, prompt, max_tokens=16))
    assert "".join(step.text for step in steps) == "The capital of Italy is Rome."
    assert steps[-1].finish_reason == "stop"
