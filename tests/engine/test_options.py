"""Loading a pair with quantised keys and values or a quantised draft: what is honoured, what is refused, texts that agree."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from engine import Finished, GenerationRequest, LoadOptions, ModelError, RequestError, cli, load
from engine.loading import cost_identity
from engine.models import ResolvedPair
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import Cache, TargetShape
from engine.targets.registry import make_target
from tests.engine.targets.hybrids import HYBRIDS, hybrid
from tests.engine.targets.sliding_families import sliding_target
from tests.engine.tiny import VOCAB, build_target, copy_tokenizer, target_config, write_draft, write_target

BLOCK = [11, 22, 33, 44, 55, 66]
SIZES = {"hidden_size": 64, "head_dim": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 3}


def target_with(bits: int, head_dim: int = 64, family: str = "llama") -> AttentionTarget:
    config = target_config(family, **SIZES | {"head_dim": head_dim})
    target = make_target(build_target(config), family, TargetShape(64, VOCAB, 3, 2048))
    target.quantise_cache(bits)
    return target


def fill(target: AttentionTarget, *passes: list[int]) -> Cache:
    cache = target.make_cache()
    for ids in passes:
        target.forward(mx.array(ids), cache)
    return cache


@pytest.mark.parametrize("bits", [0, 2, 16, True, "4", 4.0])
@pytest.mark.parametrize("name", ["kv_bits", "draft_bits"])
def test_other_widths_are_refused_by_name(name: str, bits: object) -> None:
    with pytest.raises(RequestError, match=f"{name} is .*choose 4 or 8"):
        LoadOptions(**{name: bits})  # type: ignore[arg-type]


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("prompt_length", [5, 253, 256])
def test_rollback_of_a_quantised_cache_is_exact_at_every_accepted_length(bits: int, prompt_length: int) -> None:
    """Bit for bit, also where the block crosses the place where the buffer grows: a row's groups hold nothing of other rows."""
    target = target_with(bits)
    prompt = [(7 * i + 3) % VOCAB for i in range(prompt_length)]
    for kept in range(7):
        rolled, other = fill(target, prompt, BLOCK), fill(target, prompt, BLOCK[:kept] + [80 + token for token in BLOCK[kept:]])
        for cache in (rolled, other):
            target.rollback(cache, 6 - kept)
        assert [entry.offset for entry in rolled] == [prompt_length + kept] * 3
        assert all(mx.array_equal(a, b) for a, b in zip(target.visible(rolled), target.visible(other), strict=True))
        following = mx.array([9, 8, 7])
        assert mx.array_equal(target.forward(following, rolled).logits, target.forward(following, other).logits)


def test_a_quantised_cache_is_smaller_and_close() -> None:
    plain = make_target(build_target(target_config("llama", **SIZES)), "llama", TargetShape(64, VOCAB, 3, 2048))
    ids, sizes, errors = [(5 * i) % VOCAB for i in range(40)], {}, {}
    reference = plain.forward(mx.array(ids), plain.make_cache()).logits
    for bits in (8, 4):
        target = target_with(bits)
        cache = target.make_cache()
        errors[bits] = mx.abs(target.forward(mx.array(ids), cache).logits - reference).max().item()
        sizes[bits] = sum(array.nbytes for array in target.visible(cache))
    whole = sum(array.nbytes for array in plain.visible(fill(plain, ids)))
    assert sizes[4] < sizes[8] < 0.35 * whole
    assert 0 < errors[8] < errors[4] and errors[8] < 0.1 * mx.abs(reference).max().item()


def test_heads_in_groups_of_32_are_served_and_others_refused_with_their_size() -> None:
    assert target_with(8, head_dim=32).make_cache()[0].group_size == 32
    with pytest.raises(ModelError, match=r"heads of size 48 do not divide .* without kv_bits"):
        target_with(8, head_dim=48)


@pytest.mark.parametrize("make", [lambda: hybrid("qwen3_5"), lambda: sliding_target("gemma3_text")])
def test_families_with_other_caches_refuse_to_quantise_them_and_say_so(make) -> None:
    target = make()
    with pytest.raises(ModelError, match=f"{target.family}.* only that of plain attention .* without kv_bits"):
        target.quantise_cache(8)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> Iterator[str]:
    folder, wide = tmp_path_factory.mktemp("pair"), SIZES | {"vocab_size": 49152}
    copy_tokenizer(starter.target, write_target(folder / "target", **wide))
    draft = write_draft(folder / "draft", target_config(**wide), head_dim=16, intermediate_size=96)
    yield f"{folder / 'target'}+{draft}"


@pytest.mark.parametrize("options", [LoadOptions(kv_bits=8), LoadOptions(kv_bits=4), LoadOptions(draft_bits=4),
                                     LoadOptions(kv_bits=8, draft_bits=8)])  # fmt: skip
def test_both_modes_agree_with_one_another_under_the_same_options(pair: str, options: LoadOptions) -> None:
    engine = load(pair, options=options)
    assert (engine.info.kv_bits, engine.info.draft_bits) == (options.kv_bits, options.draft_bits)
    ends = [list(engine.generate(GenerationRequest.of("hello", mode=mode, max_tokens=40, block_length=5)))[-1]
            for mode in ("baseline", "dflash", "lookup")]  # fmt: skip
    assert all(isinstance(end, Finished) for end in ends)
    assert ends[0].token_ids == ends[1].token_ids == ends[2].token_ids and ends[1].statistics.proposed > 0
    engine.close()


def test_a_pair_says_whether_a_prompt_can_be_read_in_part(pair: str, tmp_path: Path, starter: ResolvedPair) -> None:
    recurrent = write_target(tmp_path / "recurrent", "lfm2", vocab_size=49152, **HYBRIDS["lfm2"][2])
    copy_tokenizer(starter.target, recurrent)
    for name, bits, able in ((pair.split("+")[0], None, True), (pair, 8, False), (str(recurrent), None, False)):
        engine = load(name, options=LoadOptions(kv_bits=bits))
        assert engine.info.reads_in_part == able, name
        engine.close()


@pytest.mark.parametrize("bits", [4, 8])
def test_a_quantised_draft_keeps_every_projection_in_that_many_bits(pair: str, bits: int) -> None:
    engine = load(pair, options=LoadOptions(draft_bits=bits))
    model = engine._drafters["dflash"].model  # type: ignore[attr-defined]
    weights = {name: array for name, array in tree_flatten(model.parameters()) if name.endswith(("_proj.weight", "fc.weight"))}
    assert len(weights) == 1 + 7 * 2
    assert all(array.dtype == mx.uint32 for array in weights.values())
    assert weights["layers.0.mlp.up_proj.weight"].shape == (96, 64 * bits // 32)
    engine.close()


@pytest.mark.slow
def test_the_starters_stored_draft_is_quantised_anew(starter: ResolvedPair) -> None:
    """It is stored in 5 bits and run in fp32 on the CPU; at 8 bits it must still be right as often, within a token or two."""
    accepted = {}
    for bits in (None, 8):
        engine = load("starter", options=LoadOptions(draft_bits=bits))
        *_, end = engine.generate(GenerationRequest.of("List the first twenty prime numbers.", mode="dflash", max_tokens=24,
                                                       block_length=4))  # fmt: skip
        assert isinstance(end, Finished)
        accepted[bits] = (end.token_ids, end.statistics.accepted)
        engine.close()
    assert accepted[None][0] == accepted[8][0], "the text is the target's"
    assert abs(accepted[None][1] - accepted[8][1]) <= 3 and accepted[8][1] > 4


def test_a_draft_whose_rows_do_not_divide_is_refused_with_their_size(tmp_path: Path, starter: ResolvedPair) -> None:
    wide = SIZES | {"vocab_size": 49152}
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", **wide))
    draft = write_draft(tmp_path / "draft", target_config(**wide), intermediate_size=40)
    with pytest.raises(ModelError, match=r"kept in 4 bits: its rows of .*40.* without draft_bits"):
        load(f"{target}+{draft}", options=LoadOptions(draft_bits=4))
    with pytest.raises(ModelError, match="no draft to keep in 4 bits"):
        load(str(target), options=LoadOptions(draft_bits=4))


def test_what_is_measured_belongs_to_the_options(starter: ResolvedPair) -> None:
    every = [LoadOptions(), LoadOptions(kv_bits=4), LoadOptions(kv_bits=8), LoadOptions(draft_bits=4), LoadOptions(draft_bits=8)]
    assert len({tuple(cost_identity(starter, 16, options)) for options in every}) == len(every)


def test_the_command_line_passes_them_on(pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options, report = ["--kv-bits", "8", "--draft-bits", "4", "--exact"], tmp_path / "bench.json"
    (tmp_path / "prompts.jsonl").write_text('{"id": "one", "prompt": "hello"}\n', encoding="utf-8")
    bench = ["bench", "--model", pair, "--prompts", str(tmp_path / "prompts.jsonl"), "--max-tokens", "8", "--json", str(report)]
    assert cli.main([*bench, *options]) == 0
    found = json.loads(report.read_text(encoding="utf-8"))
    environment, (run,) = found["environment"], found["runs"]
    assert (environment["kv_bits"], environment["draft_bits"]) == (8, 4)
    assert ["short check" in notice for notice in environment["notices"]] == [True], "a random draft guesses nothing"
    assert isinstance(environment["exact_widths"], list) and run["identical"] and run["identity_reason"]
    capsys.readouterr()
    assert cli.main(["generate", "--model", pair, "--prompt", "hello", "--max-tokens", "8", "--json", *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["fallback"] is None) == bool(environment["exact_widths"]), "without an exact width it says why it is plain"


@pytest.mark.parametrize("option", ["--kv-bits", "--draft-bits"])
def test_other_widths_are_a_wrong_command(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        cli.main(["generate", "--model", "starter", "--prompt", "hello", option, "5"])
    assert leaving.value.code == 2 and "choose from 4, 8" in capsys.readouterr().err


def test_a_notice_of_the_pair_is_one_line_on_stderr(pair: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(pair.split("+")[0], tmp_path / "target")
    (folder / "tokenizer_config.json").unlink()
    assert cli.main(["generate", "--model", str(folder), "--prompt", "hello", "--mode", "baseline", "--max-tokens", "2"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("slipstream: This model has no chat template") and "tokenizer_config.json is missing" in lines[0]
