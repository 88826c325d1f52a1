"""Putting a pair together: drafts that do not fit, targets without a draft, cancel, and what the window may import."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import mlx.core as mx
import pytest

from engine import (
    Cancelled,
    Fallback,
    Finished,
    GenerationRequest,
    LoadProgress,
    ModelError,
    RequestError,
    Started,
    load,
)
from engine.drafters.dflash.loading import load_draft
from engine.drafters.lookup import LONGEST
from engine.loading import _number_format
from engine.models import ResolvedPair
from engine.targets.loading import load_target
from tests.engine.tiny import copy_tokenizer, draft_config, target_config, write_draft, write_target

WIDE = {"vocab_size": 49152}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> Path:
    folder = write_target(tmp_path_factory.mktemp("pair") / "target", **WIDE)
    return copy_tokenizer(starter.target, folder)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"hidden_size": 48}, "hidden size 48 against 32"),
        ({"vocab_size": 1000}, "vocabulary 1,000 against 49,152"),
        ({"dflash_config": {"target_layer_ids": [0, 4], "mask_token_id": 5}}, "taps"),
        ({"dflash_config": {"target_layer_ids": [0, 2], "mask_token_id": 50000}}, "mask token 50000"),
    ],
)
def test_a_draft_for_another_target_is_refused_and_the_number_named(
    target: Path, tmp_path: Path, changes: dict, named: str
) -> None:
    draft = write_draft(
        tmp_path / "draft",
        target_config(**WIDE) | {k: v for k, v in changes.items() if k in ("hidden_size", "vocab_size")},
        **changes,
    )
    with pytest.raises(ModelError) as caught:
        load(f"{target}+{draft}")
    assert named in str(caught.value) and "another target" in str(caught.value)


@pytest.mark.slow
def test_a_tiny_pair_of_another_family_decodes_identically(tmp_path: Path, starter: ResolvedPair) -> None:
    """Random weights: nothing is accepted, everything is rolled back, and the texts must still agree."""
    for family in ("qwen2", "qwen3"):
        folder = copy_tokenizer(starter.target, write_target(tmp_path / family, family, **WIDE))
        draft = write_draft(tmp_path / f"{family}-draft", target_config(**WIDE))
        engine = load(f"{folder}+{draft}")
        answers = [
            list(engine.generate(GenerationRequest.of("hello", mode=mode, max_tokens=60)))[-1] for mode in ("baseline", "dflash")
        ]
        assert answers[0].token_ids == answers[1].token_ids
        assert answers[1].statistics.cycles > 0 and answers[1].statistics.proposed > 0
        engine.close()


def test_a_closed_engine_says_so(target: Path) -> None:
    engine = load(str(target))
    engine.close()
    engine.close()
    with pytest.raises(RequestError, match="The engine was closed: load the model again"):
        engine.generate(GenerationRequest.of("hello"))


@pytest.mark.parametrize("mode", ["auto", "dflash"])
def test_a_target_without_a_draft_looks_up_under_the_controller_and_says_so(target: Path, mode: str) -> None:
    engine = load(str(target))
    assert engine.info.draft_name is None and engine.info.block_length == 0 and engine.info.no_draft_reason
    events = list(engine.generate(GenerationRequest.of("hello", mode=mode, max_tokens=5)))
    assert events[0] == Fallback("Lookup drafting: this model has no draft.")
    started, end = next(event for event in events if isinstance(event, Started)), events[-1]
    assert isinstance(end, Finished) and end.statistics.mode == "lookup" and end.statistics.fallback == events[0].reason
    assert started.block_length == LONGEST
    engine.close()


def test_a_family_that_cannot_roll_back_answers_plainly_and_says_why(tmp_path: Path, starter: ResolvedPair) -> None:
    folder = write_target(tmp_path / "mamba", "mamba", state_size=8, conv_kernel=4, use_bias=False, use_conv_bias=True,
                          time_step_rank=4, intermediate_size=64, expand=2, **WIDE)  # fmt: skip
    engine = load(f"{copy_tokenizer(starter.target, folder)}+{write_draft(tmp_path / 'draft', target_config(**WIDE))}")
    events = list(engine.generate(GenerationRequest.of("hello", max_tokens=5)))
    assert isinstance(events[0], Fallback) and "cache" in events[0].reason
    assert events[-1].statistics.completion_tokens >= 1
    engine.close()


def test_a_broken_draft_is_refused_not_ignored(target: Path, tmp_path: Path) -> None:
    draft = write_draft(tmp_path / "draft", target_config(**WIDE))
    (draft / "model.safetensors").write_bytes((draft / "model.safetensors").read_bytes()[:-10])
    with pytest.raises(ModelError, match="damaged or incomplete"):
        load(f"{target}+{draft}")


def test_a_broken_tokenizer_is_named(target: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(target, folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="tokenizer"):
        load(str(folder))


def test_a_tokenizer_that_brings_its_own_code_is_refused_and_nobody_is_asked(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """transformers would ask on the terminal, and take a "y" that comes through a pipe for the user's consent."""
    folder = tmp_path / "copy"
    shutil.copytree(target, folder)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    own = {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | own))
    (folder / "own.py").write_text("raise SystemExit('ran')")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(ModelError, match=r"needs program code of its own \(tokenizer_config.json\), which is not run here"):
        load(str(folder))
    assert capsys.readouterr().out == ""


def test_loading_reports_its_steps_and_can_be_cancelled_between_them(target: Path) -> None:
    cancel, stages = threading.Event(), []

    def progress(step: LoadProgress) -> None:
        stages.append(step.stage)
        if "tokenizer" in step.stage:
            cancel.set()

    draft = Path(target.parent / "draft")
    write_draft(draft, target_config(**WIDE))
    with pytest.raises(Cancelled):
        load(f"{target}+{draft}", progress=progress, cancel=cancel)
    assert list(dict.fromkeys(stages)) == ["Loading the target", "Loading the tokenizer"]


def test_loading_can_be_cancelled_while_weights_are_read(target: Path) -> None:
    cancel, fractions = threading.Event(), []

    def progress(step: LoadProgress) -> None:
        fractions.append(step.fraction)
        if len(fractions) == 2:
            cancel.set()

    with pytest.raises(Cancelled):
        load(str(target), progress=progress, cancel=cancel)
    assert len(fractions) == 2 and fractions[0] < fractions[1] < 0.6


def test_the_draft_config_fixture_matches_what_the_loader_needs() -> None:
    assert draft_config(target_config())["dflash_config"]["target_layer_ids"] == [0, 2]


def test_an_unknown_pair_is_one_clear_line() -> None:
    with pytest.raises((ModelError, RequestError)) as caught:
        load("no such model")
    assert "\n" not in str(caught.value)


def test_importing_the_public_api_loads_neither_mlx_nor_qt() -> None:
    code = "import json, sys, engine, engine.models; print(json.dumps(list(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"mlx", "mlx_lm", "PySide6", "numpy"} & set(json.loads(output))


def test_peak_memory_stays_near_weights_and_caches(starter: ResolvedPair) -> None:
    """In a process of its own: loading, a 600-token prompt and 64 tokens peak at no more than 1.15 times what must be there."""
    code = """
import json, sys, engine
loaded = engine.load("starter")
import mlx.core as mx
request = engine.GenerationRequest.of("word " * 570, mode="dflash", max_tokens=64)
*_, end = loaded.generate(request)
rows = end.statistics.prompt_tokens + end.statistics.completion_tokens + loaded.info.block_length
steps = -(-rows // 256) * 256
target, draft = loaded._target.make_cache(), loaded._drafters["dflash"].model.convention
caches = 4 * 2 * 64 * steps * (30 * 3 + draft.num_layers * draft.num_kv_heads)
print(json.dumps([mx.get_peak_memory(), loaded.info.weights_bytes, caches]))
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    peak, weights, caches = json.loads(output)
    assert peak <= 1.15 * (weights + caches), (peak, weights, caches)


def test_a_quantised_pair_says_in_how_many_bits_it_runs(starter: ResolvedPair) -> None:
    """As most models for a Mac, where they run as stored; the starter's embedding, its largest array, is kept in 8 bits."""
    target = load_target(starter.target, None)
    draft = load_draft(starter.draft, target.shape, mx.bfloat16)
    assert _number_format([target.model, draft]) == "4-bit"
    assert _number_format([draft]) == "bfloat16"


@pytest.mark.parametrize(("template", "lost"), [(False, True), (False, False), (True, False)])
def test_a_model_without_a_chat_template_has_a_notice_that_says_whether_a_file_is_missing(
    tmp_path: Path, starter: ResolvedPair, template: bool, lost: bool
) -> None:
    folder = copy_tokenizer(starter.target, write_target(tmp_path / "target", **WIDE))
    settings = folder / "tokenizer_config.json"
    if lost:
        settings.unlink()
    elif not template:
        known = json.loads(settings.read_text(encoding="utf-8"))
        settings.write_text(json.dumps({key: value for key, value in known.items() if key != "chat_template"}), encoding="utf-8")
    engine = load(str(folder))
    assert len(engine.info.notices) == (0 if template else 1)
    if not template:
        assert "no chat template" in engine.info.notices[0]
        assert ("tokenizer_config.json is missing" in engine.info.notices[0]) == lost
    assert list(engine.generate(GenerationRequest.of("hello", max_tokens=2)))[-1].text is not None
    engine.close()
