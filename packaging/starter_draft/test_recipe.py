"""Checks of the recipe's silent mistakes; needs PyTorch: ``python -m pytest packaging/starter_draft/test_recipe.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from blocks import attention_mask, choose_anchors, dpace_weights, pack  # noqa: E402
from draft import LAYER_PARTS, Draft, export, join_shards, read_draft  # noqa: E402
from evaluate import walk  # noqa: E402
from selfplay import holds_any, loops  # noqa: E402
from target import Shape, rotary_table, rotate  # noqa: E402
from train import MASK_ID, STOP, frequent  # noqa: E402

SMALL = Shape(hidden=24, layers=4, heads=3, kv_heads=1, head_dim=8, inner=40, vocabulary=64)
TAPS = 2


def small_draft(depth: int = 2) -> Draft:
    generator = torch.Generator().manual_seed(0)
    sizes = {"q_proj": (24, 24), "k_proj": (8, 24), "v_proj": (8, 24), "o_proj": (24, 24), "gate_proj": (40, 24)}
    sizes |= {"up_proj": (40, 24), "down_proj": (24, 40), "q_norm": (8,), "k_norm": (8,)}
    parameters = {"fc.weight": (24, TAPS * 24), "hidden_norm.weight": (24,), "norm.weight": (24,)}
    for layer in range(depth):
        for part in LAYER_PARTS:
            parameters[f"layers.{layer}.{part}.weight"] = sizes.get(part.split(".")[-1], (24,))
    made = {name: torch.randn(size, generator=generator) * 0.3 for name, size in parameters.items()}
    return Draft(made, SMALL)


def packed(block: int = 4) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    ids = torch.randint(4, 64, (2, 30))
    supervised = torch.zeros(2, 30, dtype=torch.bool)
    supervised[:, 8:26] = True
    anchors, exists = choose_anchors(supervised, 5)
    return ids, supervised, anchors, exists, pack(ids, supervised, anchors, exists, block, MASK_ID, torch.float32)


def test_a_packed_block_equals_the_same_block_alone_as_inference_runs_it():
    _, _, anchors, _, blocks = packed()
    draft, embedding, taps = small_draft(), torch.randn(64, 24), torch.randn(2, 30, TAPS * 24)
    inputs = embedding[blocks.inputs]
    together = draft(inputs, taps, blocks.positions, blocks.mask).view(2, 5, 4, -1)
    for row in range(2):
        for index in range(5):
            anchor = int(anchors[row, index])
            alone = draft(
                inputs.view(2, 5, 4, -1)[row, index][None],
                taps[row : row + 1, :anchor],
                blocks.positions.view(2, 5, 4)[row, index][None],
                torch.zeros(1, 1, 4, anchor + 4),
            )
            torch.testing.assert_close(together[row, index], alone[0], atol=1e-5, rtol=1e-5)


def test_no_block_sees_features_from_its_anchor_on():
    _, _, anchors, _, blocks = packed()
    draft, taps = small_draft(), torch.randn(2, 30, TAPS * 24)
    inputs = torch.randn(64, 24)[blocks.inputs]
    before = draft(inputs, taps, blocks.positions, blocks.mask).view(2, 5, 4, -1)
    anchor = int(anchors[0, 2])
    taps[0, anchor:] += 5
    after = draft(inputs, taps, blocks.positions, blocks.mask).view(2, 5, 4, -1)
    torch.testing.assert_close(before[0, 2], after[0, 2])
    assert not torch.allclose(before[0, 4], after[0, 4])  # a later anchor does see the changed rows


def test_labels_stand_at_their_own_position_and_stop_at_the_answers_end():
    ids, supervised, anchors, _, blocks = packed()
    labels, wanted = blocks.labels.view(2, 5, 4), blocks.wanted.view(2, 5, 4)
    for row in range(2):
        for index in range(5):
            anchor = int(anchors[row, index])
            assert not wanted[row, index, 0]
            for slot in range(1, 4):
                assert bool(wanted[row, index, slot]) == bool(supervised[row, anchor + slot])
                assert labels[row, index, slot] == ids[row, anchor + slot]


def test_missing_anchors_still_give_finite_attention():
    mask = attention_mask(torch.tensor([[5, 0]]), torch.tensor([[True, False]]), 2, 8, torch.float32)
    assert mask[0, 0, 2:].isfinite().sum(-1).tolist() == [2, 2]
    assert mask[0, 0, 0, :8].isfinite().sum() == 5


def test_dpace_weighs_a_slot_by_what_can_follow_it():
    weights = dpace_weights(torch.tensor([[0.0, 0.0, 0.0, 30.0]]), torch.tensor([[False, True, True, True]]))
    torch.testing.assert_close(weights, torch.tensor([[0.0, 2.5, 1.5, 0.5]]))


def test_a_loop_is_cut_from_its_second_round_to_the_end_of_its_answer_only():
    answer = [*range(10, 30), *([40, 41, 42] * 20)]
    ids = torch.tensor([[1, 2, *answer, 2, 7, 8, 9]])
    offsets = torch.tensor([[0, 0, *range(1, len(answer) + 1), 0, 1, 2, 3]])
    cut = loops(ids, offsets)[0].tolist()
    begin = 2 + 20 + 3
    assert cut == [False] * begin + [True] * (2 + len(answer) - begin) + [False] * 4


def test_chats_that_hold_an_evaluation_prompt_are_found():
    rows = torch.tensor([[1, 5, 6, 7, 2], [1, 5, 7, 6, 2]])
    assert holds_any(rows, [[5, 6, 7]]).tolist() == [True, False]


def test_a_replayed_decode_advances_by_the_accepted_prefix_and_one():
    right = torch.tensor([[1, 1, 0], [0, 0, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]], dtype=torch.bool)
    assert walk(right) == 6 / 3  # cycles at places 0 (three tokens), 3 (one), 4 (the last two)


def test_the_draft_vocabulary_holds_the_stop_token_and_never_the_mask():
    counts = torch.arange(64)
    counts[MASK_ID], counts[STOP] = 10_000, 0
    chosen = frequent(counts, 8).tolist()
    assert STOP in chosen and MASK_ID not in chosen and 63 in chosen


def test_rotation_depends_on_the_distance_alone():
    x, y = torch.randn(8), torch.randn(8)
    near, far = rotary_table(torch.tensor([3, 5, 103, 105]), SMALL), []
    for a, b in ((0, 1), (2, 3)):
        far.append(rotate(x, near[0][a], near[1][a]) @ rotate(y, near[0][b], near[1][b]))
    torch.testing.assert_close(far[0], far[1], atol=1e-4, rtol=1e-4)


def test_export_keeps_every_tensor_and_names_the_draft_vocabulary(tmp_path: Path):
    parameters = small_draft(3).parameters
    export(parameters, tmp_path, SMALL, (1, 2), 8, MASK_ID, torch.tensor([9, 2, 30]))
    join_shards(tmp_path)
    back = read_draft(tmp_path, None, torch.device("cpu"))
    assert back.keys() == parameters.keys()
    for name, value in parameters.items():
        assert torch.equal(back[name], value.to(torch.bfloat16).float())
    from safetensors.torch import load_file

    stored = load_file(tmp_path / "model.safetensors")["d2t"]
    assert (stored + torch.arange(3)).tolist() == [2, 9, 30]
    pruned = read_draft(tmp_path, [0, 2], torch.device("cpu"))
    assert torch.equal(pruned["layers.1.mlp.up_proj.weight"], back["layers.2.mlp.up_proj.weight"])


def test_an_added_layer_says_at_first_what_the_draft_said_without_it(tmp_path: Path):
    _, _, _, _, blocks = packed()
    draft, inputs, taps = small_draft(), torch.randn(64, 24)[blocks.inputs], torch.randn(2, 30, TAPS * 24)
    export(draft.parameters, tmp_path, SMALL, (1, 2), 4, MASK_ID, None)
    same, deeper = (Draft(read_draft(tmp_path, keep, torch.device("cpu")), SMALL) for keep in ([0, 1], [0, 1, 1]))
    assert deeper.depth == 3
    torch.testing.assert_close(*(made(inputs, taps, blocks.positions, blocks.mask) for made in (deeper, same)))
