"""Whole pairs with a draft in every packaging: the text is plain decoding's, and the starter's draft repacked drafts as it did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine import Finished, GenerationRequest, load
from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.engine.drafters.dflash.packagings import PACKAGINGS, fused, speculators
from tests.engine.tiny import copy_tokenizer, write_target

VOCAB = 49152
QUESTION = "Explain in a few sentences why the sky is blue."


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> Path:
    folder = write_target(tmp_path_factory.mktemp("pair") / "target", "llama", vocab_size=VOCAB)
    return copy_tokenizer(starter.target, folder)


def answer(engine: Engine, mode: Any, **settings: Any) -> Finished:
    end = list(engine.generate(GenerationRequest.of(QUESTION, mode=mode, **settings)))[-1]
    assert isinstance(end, Finished)
    return end


@pytest.mark.parametrize("name", ["speculators reduced", "second"])
def test_a_tiny_pair_loads_and_decodes_as_plain_decoding_does(tmp_path: Path, target: Path, name: str) -> None:
    draft = PACKAGINGS[name](VOCAB).write(tmp_path / "draft")
    engine = load(f"{target}+{draft}")
    assert engine.info.no_draft_reason is None and engine.info.draft_name == "draft"
    check_identity(engine)
    engine.close()


@pytest.fixture(scope="module")
def tiny(target: Path) -> Iterator[Engine]:
    """One engine without a draft: loading a tokenizer fourteen times would be most of this file's time."""
    engine = load(str(target))
    yield engine
    engine.close()


@pytest.mark.parametrize("name", PACKAGINGS)
def test_every_packaging_decodes_as_plain_decoding_does(tmp_path: Path, tiny: Engine, name: str) -> None:
    model = load_draft(PACKAGINGS[name](VOCAB).write(tmp_path), tiny._target.shape, mx.float32)
    tiny._drafters["dflash"] = DFlashDrafter(model, tiny._target, "draft", model.convention.block_length)
    check_identity(tiny)


def check_identity(engine: Engine) -> None:
    ends = [answer(engine, mode, max_tokens=40, block_length=5) for mode in ("baseline", "dflash")]
    assert ends[0].token_ids == ends[1].token_ids
    assert ends[1].statistics.proposed > 40 and ends[1].statistics.fallback is None


def repacked(source: Path, folder: Path) -> Path:
    """The draft in ``source`` in speculators packaging, its projections fused."""
    zlab = json.loads((source / "config.json").read_text(encoding="utf-8"))
    folder.mkdir()
    weights: dict[str, mx.array] = mx.load(str(source / "model.safetensors"))  # type: ignore[assignment]
    mx.save_safetensors(str(folder / "model.safetensors"), fused(weights))
    config = speculators(zlab, quantization=zlab["quantization"])
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_the_starter_draft_repacked_proposes_the_same_tokens(engine: Engine, starter: ResolvedPair, tmp_path: Path) -> None:
    """The real target's taps on a real answer: token for token what the draft as shipped proposes, and some of it right."""
    assert starter.draft is not None
    target = engine._target
    prompt = engine.encode(GenerationRequest.of(QUESTION).messages)
    tokens = prompt + list(answer(engine, "baseline", max_tokens=28).token_ids)
    proposals, right = [], 0
    for folder in (starter.draft, repacked(starter.draft, tmp_path / "draft")):
        drafter = DFlashDrafter(load_draft(folder, target.shape, mx.float32), target, "draft", 8)
        rows = target.forward(mx.array(tokens), target.make_cache(), drafter.taps).taps
        assert rows is not None
        session, made = drafter.session(), []
        mx.eval(session.prefill(rows[: len(prompt) - 1], 0))
        for seen in range(len(prompt), len(tokens) - 7, 3):
            new = rows[seen - 3 : seen] if seen > len(prompt) else rows[seen - 1 : seen]
            ids = session.propose(mx.array(tokens[seen : seen + 1]), new, seen, 7, tokens[: seen + 1])
            assert ids is not None
            made.append(ids.tolist())
            right += sum(a == b for a, b in zip(made[-1][:2], tokens[seen + 1 : seen + 3], strict=True))
        proposals.append(made)
    assert proposals[0] == proposals[1] and len(proposals[0]) >= 7
    assert right >= 2, "the draft is right so seldom that its taps may be the wrong ones"
