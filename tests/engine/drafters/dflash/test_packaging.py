"""Which packaging a config is and what it means there: one order, every other kind of drafter refused by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine.drafters.dflash.convention import DraftConvention, Selector
from engine.errors import ModelError
from engine.targets.protocol import TargetShape
from tests.engine.drafters.dflash.packagings import FULL, KEPT, PACKAGINGS, SLIDING, Packed, offsets, speculators
from tests.engine.tiny import draft_config, draft_weights, target_config

TARGET = target_config()
SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)


@pytest.fixture
def read(tmp_path: Path):
    """Parses a complete config beside the tensors of a plain two-layer draft, or beside those given."""

    def parse(config: dict[str, Any], **added: mx.array) -> DraftConvention:
        mx.save_safetensors(str(tmp_path / "model.safetensors"), draft_weights(draft_config(TARGET)) | added)
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return DraftConvention.read(tmp_path)

    return parse


def zlab(**changes: Any) -> dict[str, Any]:
    return draft_config(TARGET, **changes)


def section(**values: Any) -> dict[str, Any]:
    return {"target_layer_ids": [0, 2], "mask_token_id": 5, **values}


SECOND = {"selector_rank": 4, "selector_top_k": 5, "conv_kernel_size": 2, "conv_group_size": 8}
OTHERS = [
    (zlab(architectures=["Qwen3DSparkModel"]), "DSpark"),
    (zlab(architectures=["DSparkDraftModel"], markov_rank=256), "DSpark"),
    (zlab(markov_rank=256), "DSpark"),
    (zlab(architectures=["Qwen3DSparkModel"], markov_rank=0, enable_confidence_head=True), "DSpark"),
    (zlab(architectures=["Gemma4DSparkModel"], markov_rank=0), "DSpark"),
    (zlab(dflash_config=section(markov_rank=256)), "DSpark"),
    (zlab(dflash_config=section(projector_type="dspark", shift_label=True)), "DSpark"),
    (zlab(architectures=["Lfm2DSparkDraftModel"]), "DSpark"),
    (zlab(architectures=["DeepseekV4ForCausalLM"], dspark_block_size=5), "DSpark"),
    (zlab(architectures=["DFlash2DraftModel"], markov_rank=8, dflash_config=section(**SECOND)), "DSpark"),
    (zlab(architectures=["LlamaForCausalLMEagle3"]), "EAGLE-3"),
    (zlab(architectures=["EagleModel"]), "EAGLE"),
    (zlab(architectures=["PEagleDraftModel"]), "P-EAGLE"),
    (zlab(architectures=["MTPDraftModel"]), "MTP"),
    (zlab(architectures=["DominoDraftModel"]), "Domino"),
    (zlab(dflash_config=section(projector_type="domino")), "Domino"),
    (zlab(dflash_config=section(projector_type="spiral")), "DFlash with a spiral head"),
    (zlab(dflash_config=section(attention_mode="mla")), "DFlash with mla attention"),
    (zlab(dflash_config=section(attention_modes=["kda", "gqa"])), "DFlash with kda attention"),
    (speculators(zlab(), "dspark"), "DSpark"),
    (speculators(zlab(), "eagle3"), "EAGLE-3"),
    (speculators(zlab(), "eagle"), "EAGLE"),
    (speculators(zlab(), "peagle"), "P-EAGLE"),
    (speculators(zlab(), "mtp"), "MTP"),
    (speculators(zlab(), "independent"), "independent"),
    (speculators(zlab(), projector_type="domino"), "Domino"),
]


@pytest.mark.parametrize(("config", "kind"), OTHERS)
def test_another_kind_of_drafter_is_refused_by_its_name_in_one_line(read, config: dict[str, Any], kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(config)
    message = str(caught.value)
    assert f"is a draft of kind {kind}, not a DFlash draft" in message and "\n" not in message


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"architectures": ["Qwen3ForCausalLM"]}, "Qwen3ForCausalLM"),
        ({"architectures": ["Qwen3ForCausalLM"], "dflash_config": None}, "Qwen3ForCausalLM"),
        ({"architectures": None, "dflash_config": None}, "qwen3"),
        ({"architectures": None, "dflash_config": None, "model_type": None}, "unknown"),
    ],
)
def test_what_is_no_drafter_is_refused_by_its_architecture(read, changes: dict[str, Any], found: str) -> None:
    with pytest.raises(ModelError, match=rf"is not a DFlash draft \(found {found}\)"):
        read(zlab(**changes))


@pytest.mark.parametrize("name", PACKAGINGS)
def test_every_packaging_is_read_as_what_it_means(tmp_path: Path, name: str) -> None:
    packed: Packed = PACKAGINGS[name]()
    found = DraftConvention.read(packed.write(tmp_path))
    assert (found.causal, found.windows, found.window_from_anchor) == (packed.causal, packed.windows, packed.from_anchor)
    assert (found.first_slot, found.rope_theta, found.rope_scaling) == (packed.first_slot, 10000.0, None)
    assert found.draft_vocab_size == (len(packed.ids) if packed.ids else None)
    assert (found.selector is not None) == packed.second == (found.convolution is not None)
    assert (found.embedding_rows is not None) == ("embed_tokens.weight" in packed.weights)
    found.check_fits(SHAPE, "draft")


@pytest.mark.parametrize("attention", ["gqa", "mha", "GQA"])
def test_usual_attention_modes_are_accepted(read, attention: str) -> None:
    assert read(zlab(dflash_config=section(attention_mode=attention, projector_type="dflash"))).num_layers == 2


def test_speculators_tap_ids_count_layers_that_were_run_and_come_down_by_one(read) -> None:
    config = speculators(zlab(), aux_hidden_state_layer_ids=[2, 4])
    assert read(config).taps == (1, 3)


@pytest.mark.parametrize("ids", [[0, 2], [1, 5]])
def test_speculators_taps_outside_the_target_are_refused(read, ids: list[int]) -> None:
    found = read(speculators(zlab(), aux_hidden_state_layer_ids=ids))
    with pytest.raises(ModelError, match=r"belongs to another target .taps"):
        found.check_fits(SHAPE, "draft")


@pytest.mark.parametrize("ids", [[2, 1], ["1", "3"], [], [1.0, 3]])
def test_speculators_taps_that_are_no_layers_are_refused(read, ids: list) -> None:
    with pytest.raises(ModelError, match="ascending layer numbers"):
        read(speculators(zlab(), aux_hidden_state_layer_ids=ids))


def test_speculators_sizes_come_from_its_layer_section(read) -> None:
    config = speculators(zlab(), intermediate_size=1, rope_theta=1.0, num_attention_heads=77)
    found = read(config)
    assert (found.intermediate_size, found.rope_theta, found.num_heads) == (40, 10000.0, 4)


@pytest.mark.parametrize(
    ("kinds", "changes", "causal"),
    [
        ([FULL, FULL], {}, (False, False)),
        ([FULL, FULL], {"sliding_window_non_causal": True}, (False, False)),
        ([SLIDING, FULL], {}, (True, False)),
        ([SLIDING, FULL], {"sliding_window_non_causal": ...}, (True, False)),
        ([SLIDING, FULL], {"sliding_window_non_causal": True}, (False, False)),
    ],
)
def test_speculators_sliding_layers_are_causal_unless_it_says_otherwise(read, kinds, changes, causal) -> None:
    assert read(speculators(zlab(layer_types=kinds, sliding_window=8), **changes)).causal == causal


def test_speculators_second_draft_sees_its_block_both_ways_unless_it_says_otherwise(read) -> None:
    base = zlab(layer_types=[SLIDING] * 2, sliding_window=8)
    assert read(speculators(base, "dflash2", sliding_window_non_causal=..., **SECOND)).causal == (False, False)
    assert read(speculators(base, "dflash2", sliding_window_non_causal=False, **SECOND)).causal == (True, True)


def test_a_causality_stated_in_the_layer_section_comes_first(read) -> None:
    config = speculators(zlab(layer_types=[SLIDING] * 2, sliding_window=8), sliding_window_non_causal=True)
    config["transformer_layer_config"]["is_causal"] = True
    assert read(config).causal == (True, True)


@pytest.mark.parametrize(
    ("tokens", "changes", "slot", "block"),
    [
        (5, {}, 1, 6),
        (6, {}, 0, 7),
        (6, {"sample_from_anchor": False}, 0, 7),
        (5, {"sample_from_anchor": True}, 1, 6),
        (3, {}, 1, 6),
        (3, {"sample_from_anchor": True}, 0, 7),
        (3, {"sample_from_anchor": False}, 1, 6),
        (3, {"shift_label": True}, 0, 7),
        ("5", {"sample_from_anchor": True}, 0, 7),
    ],
)
def test_the_first_predicting_slot_follows_from_what_is_proposed_then_from_the_flag(read, tokens, changes, slot, block) -> None:
    found = read(speculators(zlab(), tokens=tokens, **changes))
    assert (found.first_slot, found.block_length) == (slot, block)


@pytest.mark.parametrize("methods", [None, [], "greedy", [7], [{"proposal_type": "greedy"}]])
def test_without_a_count_of_proposals_the_anchor_is_not_sampled_from(read, methods: Any) -> None:
    config = speculators(zlab())
    config["speculators_config"]["proposal_methods"] = methods
    assert read(config).first_slot == 1


def test_the_default_proposal_method_counts_and_not_the_first(read) -> None:
    config = speculators(zlab())
    config["speculators_config"]["proposal_methods"] = [
        {"proposal_type": "tree", "speculative_tokens": 6},
        {"proposal_type": "greedy", "speculative_tokens": 5},
    ]
    assert read(config).first_slot == 1
    config["speculators_config"]["default_proposal_method"] = "tree"
    assert read(config).first_slot == 0


def test_either_mark_of_speculators_is_enough(read) -> None:
    for dropped in ("speculators_model_type", "speculators_config"):
        config = speculators(zlab(), **{dropped: ...})
        assert read(config).taps == (0, 2)


@pytest.mark.parametrize("key", ["transformer_layer_config", "aux_hidden_state_layer_ids", "block_size", "mask_token_id"])
def test_a_key_missing_from_speculators_packaging_is_named(read, key: str) -> None:
    with pytest.raises(ModelError, match=f"lacks '{key}'"):
        read(speculators(zlab(), **{key: ...}))


@pytest.mark.parametrize("value", [True, False])
def test_shifted_labels_move_the_first_slot_in_both_places(read, value: bool) -> None:
    slot = 0 if value else 1
    assert read(zlab(shift_label=value)).first_slot == slot
    assert read(zlab(dflash_config=section(shift_label=value))).first_slot == slot


@pytest.mark.parametrize(
    ("key", "flat", "nested"), [("block_size", 6, 8), ("mask_token_id", 5, 6), ("target_layer_ids", [0, 2], [1, 3])]
)
def test_two_places_that_differ_are_refused_and_both_values_named(read, key: str, flat: Any, nested: Any) -> None:
    with pytest.raises(ModelError) as caught:
        read(zlab(**{key: flat}, dflash_config=section(**{key: nested})))
    assert f"{key!r} is {flat!r} and, in dflash_config, {nested!r}" in str(caught.value)
    assert read(zlab(**{key: nested}, dflash_config=section(**{key: nested}))).num_layers == 2


def test_taps_other_than_the_weights_read_are_refused(read) -> None:
    with pytest.raises(ModelError, match=r"names 3 taps and fc\.weight reads 2"):
        read(zlab(dflash_config=section(target_layer_ids=[0, 1, 2])))


def test_sliding_layers_named_by_another_key(read) -> None:
    found = read(zlab(dflash_config=section(use_swa=True, swa_window_size=12, causal=False)))
    assert (found.windows, found.causal) == ((12, 12), (False, False))


@pytest.mark.parametrize("place", ["flat", "nested"])
def test_query_causality_is_read_in_both_places(read, place: str) -> None:
    key = {"dflash_query_causal": True}
    assert read(zlab(**key) if place == "flat" else zlab(dflash_config=section(**key))).causal == (True, True)


@pytest.mark.parametrize("mark", ["architecture", "selector"])
def test_the_second_draft_is_found_by_either_mark(read, mark: str) -> None:
    names = ["DFlash2DraftModel"] if mark == "architecture" else ["DFlashDraftModel"]
    found = read(zlab(architectures=names, dflash_config=section(**SECOND)))
    assert found.convolution == (2, 8) and found.selector == Selector(rank=4, top_k=5, multiplier=1.0, softcap=None)


@pytest.mark.parametrize("key", SECOND)
def test_a_key_missing_from_the_second_draft_is_named(read, key: str) -> None:
    changed = {name: value for name, value in SECOND.items() if name != key}
    with pytest.raises(ModelError, match=f"lacks '{key}'"):
        read(zlab(architectures=["DFlash2DraftModel"], dflash_config=section(**changed)))


@pytest.mark.parametrize(("cap", "found"), [(20, 20.0), (0, None), (-1, None), (None, None)])
def test_the_soft_cap_of_the_second_draft(read, cap: Any, found: float | None) -> None:
    config = zlab(architectures=["DFlash2DraftModel"], dflash_config=section(**SECOND, final_logit_softcapping=cap))
    selector = read(config).selector
    assert selector is not None and selector.softcap == found


@pytest.mark.parametrize("key", ["final_logit_softcapping", "output_multiplier"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scales_of_the_second_draft_that_are_no_numbers_are_refused(read, key: str, value: float) -> None:
    with pytest.raises(ModelError, match=f"{key} is {value}"):
        read(zlab(architectures=["DFlash2DraftModel"], dflash_config=section(**SECOND, **{key: value})))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"selector_rank": 0}, "selector_rank 0"),
        ({"selector_top_k": 0}, "selector_top_k 0"),
        ({"selector_top_k": 161}, "selector_top_k 161"),
        ({"conv_kernel_size": 0}, "conv_kernel_size 0"),
        ({"conv_group_size": 5}, "conv_group_size 5"),
        ({"conv_group_size": 0}, "conv_group_size 0"),
    ],
)
def test_impossible_numbers_of_the_second_draft_are_refused(read, changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError, match=word):
        read(zlab(architectures=["DFlash2DraftModel"], dflash_config=section(**(SECOND | changes))))


@pytest.mark.parametrize("key", ["target_hidden_size", "vocab_size"])
def test_sizes_below_one_are_refused(read, key: str) -> None:
    with pytest.raises(ModelError, match=f"{key} 0"):
        read(zlab(**{key: 0}))


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"embed_tokens.weight": (159, 32)}, "embedding has 159 rows for a vocabulary of 160"),
        ({"lm_head.weight": (159, 32)}, "head has 159 rows for a vocabulary of 160 and no d2t"),
        ({"lm_head.weight": (160, 32), "d2t": KEPT}, f"head has 160 rows and d2t names {len(KEPT)} tokens"),
        ({"t2d": (160,)}, "t2d without d2t"),
    ],
)
def test_vocabularies_that_do_not_match_are_refused(read, tensors: dict[str, Any], problem: str) -> None:
    added = {name: offsets(KEPT) if name == "d2t" else mx.zeros(shape) for name, shape in tensors.items()}
    with pytest.raises(ModelError, match=problem):
        read(zlab(), **added)


def test_selecting_from_a_reduced_vocabulary_is_refused(read) -> None:
    config = zlab(architectures=["DFlash2DraftModel"], dflash_config=section(**SECOND))
    with pytest.raises(ModelError, match="selects from a reduced vocabulary"):
        read(config, d2t=offsets(KEPT))


@pytest.mark.parametrize(
    ("added", "changes", "mismatch"),
    [
        ({"fc.weight": (32, 128)}, {"target_hidden_size": 64}, "hidden size 64 against 32"),
        ({"embed_tokens.weight": (160, 32)}, {"dflash_config": section(mask_token_id=160)}, "mask token 160 outside"),
    ],
)
def test_a_draft_with_other_numbers_is_refused(read, added: dict[str, tuple], changes: dict[str, Any], mismatch: str) -> None:
    found = read(zlab(**changes), **{name: mx.zeros(shape) for name, shape in added.items()})
    with pytest.raises(ModelError, match=f"belongs to another target .{mismatch}"):
        found.check_fits(SHAPE, "draft")


def test_a_narrower_draft_without_a_vocabulary_of_its_own_is_refused(read) -> None:
    found = read(zlab(target_hidden_size=64), **{"embed_tokens.weight": mx.zeros((160, 32)), "fc.weight": mx.zeros((32, 128))})
    wider = TargetShape(hidden_size=64, vocab_size=160, num_layers=4, context_length=2048)
    with pytest.raises(ModelError, match="hidden size 32 against 64, without an embedding and a head"):
        found.check_fits(wider, "draft")
