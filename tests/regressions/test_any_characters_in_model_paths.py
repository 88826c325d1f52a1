"""janhq/jan#6632, lmstudio-ai/lmstudio-bug-tracker#1376: a model whose path had letters outside ASCII did not load."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from engine import GenerationRequest, LoadOptions, load
from engine.models import Downloader, ResolvedPair, installed, plan_download, verify_model
from tests.engine.tiny import copy_tokenizer, write_target
from tests.hub_server import HubServer

NAMES = ["Пользователь", "用户", "🦊 home", unicodedata.normalize("NFD", "Škoda ñandú"), "two  spaces' \"quotes\""]


@pytest.mark.parametrize("name", NAMES, ids=["Cyrillic", "CJK", "emoji", "decomposed accents", "quotes"])
def test_a_model_below_such_a_folder_is_fetched_checked_and_answers(
    starter: ResolvedPair, hub: HubServer, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / name / "hub"))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / name / "slipstream"))
    folder = copy_tokenizer(starter.target, write_target(tmp_path / "made", vocab_size=49152, num_hidden_layers=1))
    hub.add_folder("org/tiny", folder)
    Downloader(plan_download("org/tiny", with_draft=False)).run()
    assert [model.id for model in installed()] == ["org/tiny"] and verify_model("org/tiny") == []
    engine = load("org/tiny", options=LoadOptions(prefix_disk_bytes=0))
    *_, finished = engine.generate(GenerationRequest.of("hello", mode="baseline", max_tokens=2))
    engine.close()
    assert len(finished.token_ids) == 2
