"""ml-explore/mlx-lm#1757, waybarrios/vllm-mlx#743: unloading or switching a model did not give its memory back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

MEGABYTE = 2**20
ROUNDS = """
import json, sys, psutil, engine
pair, rounds = sys.argv[1], int(sys.argv[2])
held = []
for _ in range(rounds):
    loaded = engine.load(pair, options=engine.LoadOptions(prefix_disk_bytes=0))
    list(loaded.generate(engine.GenerationRequest.of("Hello there", max_tokens=4)))
    inside = psutil.Process().memory_info().rss
    loaded.close()
    del loaded
    held.append((inside, psutil.Process().memory_info().rss))
import mlx.core as mx
print(json.dumps([held, mx.get_active_memory() + mx.get_cache_memory()]))
"""


def run_rounds(pair: str, rounds: int) -> tuple[list[tuple[int, int]], int]:
    """Resident bytes with the pair loaded and after it was unloaded, for each round, and what MLX holds at the end."""
    result = subprocess.run([sys.executable, "-c", ROUNDS, pair, str(rounds)], capture_output=True, text=True, check=True)
    held, mlx = json.loads(result.stdout)
    return held, mlx


@pytest.fixture
def tiny_pair(tmp_path: Path, starter: ResolvedPair) -> str:
    """A pair of random weights, 25 MB as it stands in memory."""
    size = {"vocab_size": 49152, "hidden_size": 128, "num_attention_heads": 4, "head_dim": 32, "num_hidden_layers": 3}
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", **size))
    return f"{target}+{write_draft(tmp_path / 'draft', target_config(**size))}"


def test_the_starter_gives_back_its_weights_each_time(starter: ResolvedPair) -> None:
    held, mlx = run_rounds("starter", 2)
    assert mlx < MEGABYTE
    for loaded, unloaded in held:
        assert loaded - unloaded > 500 * MEGABYTE
    assert held[1][1] - held[0][1] < 60 * MEGABYTE, "a tenth of its weights"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_rounds_of_load_chat_and_unload_stay_on_one_level(tiny_pair: str) -> None:
    held, mlx = run_rounds(tiny_pair, 200)
    assert mlx < MEGABYTE
    growth = (held[-1][1] - held[9][1]) / 190
    assert growth < 0.25 * MEGABYTE, f"{growth / MEGABYTE:.2f} MB a round"


def test_the_seeds_of_layers_that_were_filled_from_a_file_do_not_pile_up(starter: ResolvedPair) -> None:
    """Making a layer draws random weights that nobody looks at; what they leave of the random state was 1 MB a load."""
    code = """
import gc, sys, psutil, mlx.core as mx
from engine.memory import give_back
from engine.targets.loading import load_target
from pathlib import Path
held = []
for _ in range(12):
    load_target(Path(sys.argv[1]), None)
    give_back()
    held.append(psutil.Process().memory_info().rss)
print(held[-1] - held[3])
"""
    result = subprocess.run([sys.executable, "-c", code, str(starter.target)], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 2 * MEGABYTE
