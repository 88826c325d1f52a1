"""``slipstream generate`` is one process an answer: the second run of a long prompt begins with what the first left on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import cli
from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

WIDE = {"vocab_size": 49152, "max_position_embeddings": 8192}  # the starter's tokenizer
PROMPT = " ".join(f"word {number}" for number in range(700))


@pytest.fixture
def pair(tmp_path: Path, starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> str:
    """TARGET+DRAFT of a tiny random pair, and a home of its own for what is kept."""
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", **WIDE))
    draft = write_draft(tmp_path / "draft", target_config(**WIDE))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    return f"{target}+{draft}"


def test_the_second_run_hits_and_says_the_same(pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def generate(*more: str) -> dict:
        assert cli.main(["generate", "--model", pair, "--prompt", PROMPT, "--max-tokens", "12", "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)

    first, second, without = generate(), generate(), generate("--no-cache")
    assert (first["cached_tokens"], first["cache"]) == (0, "nothing kept begins like this prompt")
    assert second["cache"] == "disk" and second["prompt_tokens"] - 2048 <= second["cached_tokens"] < second["prompt_tokens"] > 2100
    assert (without["cached_tokens"], without["cache"]) == (0, "turned off")
    assert first["token_ids"] == second["token_ids"] == without["token_ids"]
    assert {file.stat().st_mode & 0o077 for file in (tmp_path / "home" / "cache" / "prefix").iterdir()} == {0}, "text of the user"
