"""Checks of this recipe's silent mistakes; needs PyTorch: ``python -m pytest packaging/hybrid_pair/test_hybrid.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "starter_draft")]

from delta import CHUNK, delta_step, gated_delta, invert  # noqa: E402
from hybrid import Hybrid, Sizes, Stepper, initial  # noqa: E402
from store import GROUP, read_target, write_target  # noqa: E402
from texts import ASSISTANT, END, USER, pack, prompt_ids, read_chats, train_tokenizer, without  # noqa: E402
from writing import Writer, answer_offsets  # noqa: E402

SMALL = Sizes(vocabulary=96, hidden=64, layers=4, inner=64, heads=2, head_dim=32, key_heads=2, value_heads=6, delta_dim=16)


def rule_inputs(length: int, heads: int = 3, size: int = 8) -> list[torch.Tensor]:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, length, heads, size) for _ in range(3))
    key = key / key.norm(dim=-1, keepdim=True)
    return [query, key, value, -torch.rand(2, length, heads) * 0.3, torch.rand(2, length, heads)]


def stepwise(inputs: list[torch.Tensor]) -> torch.Tensor:
    state, outputs = torch.zeros(2, 3, 8, 8, dtype=inputs[0].dtype), []
    for place in range(inputs[0].shape[1]):
        output, state = delta_step(state, *(rows[:, place] for rows in inputs))
        outputs.append(output)
    return torch.stack(outputs, 1)


def test_the_chunked_rule_is_the_rule_step_by_step_and_so_is_its_gradient():
    inputs, plain = rule_inputs(3 * CHUNK), [rows.clone() for rows in rule_inputs(3 * CHUNK)]
    for rows in (*inputs, *plain):
        rows.requires_grad_()
    ours, reference = gated_delta(*inputs), stepwise(plain)
    torch.testing.assert_close(ours, reference, atol=2e-5, rtol=1e-4)
    weight = torch.randn_like(ours)
    (ours * weight).sum().backward()
    (reference * weight).sum().backward()
    for mine, theirs in zip(inputs, plain, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=2e-4, rtol=1e-3)


def test_equal_keys_and_full_learning_rates_do_not_cost_the_digits():
    """The hardest matrix to invert: every entry below the diagonal is one."""
    query, key, value, gate, beta = rule_inputs(2 * CHUNK)
    inputs = [query, key[:, :1].expand_as(key), value, torch.zeros_like(gate), torch.ones_like(beta)]
    torch.testing.assert_close(gated_delta(*inputs), stepwise(inputs), atol=1e-3, rtol=1e-3)
    lower = torch.ones(CHUNK, CHUNK).tril(-1)
    torch.testing.assert_close(invert(lower) @ (torch.eye(CHUNK) + lower), torch.eye(CHUNK), atol=1e-3, rtol=0)


@pytest.mark.parametrize("length", [5, 64, 70])
def test_a_whole_pass_and_single_steps_give_the_same_logits(length: int):
    torch.manual_seed(3)
    model = Hybrid(initial(SMALL, torch.device("cpu")), SMALL)
    ids = torch.randint(0, 96, (3, length))
    whole = torch.nn.functional.linear(model(ids)[0], model.embedding)
    stepper = Stepper(model, 3, 80)
    for _ in range(2):  # the second time over what the first left behind
        stepper.restart()
        for place in range(length):
            logits = stepper.step(ids[:, place], torch.tensor([place]))
            torch.testing.assert_close(logits, whole[:, place], atol=1e-4, rtol=1e-3)


def test_no_row_sees_a_later_one():
    model = Hybrid(initial(SMALL, torch.device("cpu")), SMALL)
    ids = torch.randint(0, 96, (1, 130))
    changed = ids.clone()
    changed[0, 100] ^= 1
    before, after = model(ids, (0, 3))[1], model(changed, (0, 3))[1]
    assert torch.equal(before[:, :100], after[:, :100])
    assert not torch.allclose(before[:, 100], after[:, 100])


def test_a_stored_target_reads_back_as_the_values_it_was_said_to_stand_for(tmp_path: Path):
    weights = initial(SMALL, torch.device("cpu"))
    values = write_target(weights, SMALL, END, tmp_path)
    back = read_target(tmp_path, torch.device("cpu"))
    assert values.keys() == back.keys() == weights.keys()
    for name, value in values.items():
        assert torch.equal(value, back[name]), name
        spread = (weights[name].max() - weights[name].min()) / 255
        assert (value - weights[name]).abs().max() <= spread / 2 * 1.01, name
    assert any(not torch.equal(values[name], weights[name]) for name in values if weights[name].shape[-1] % GROUP == 0)


def test_what_is_not_finite_is_not_stored(tmp_path: Path):
    weights = initial(SMALL, torch.device("cpu"))
    next(iter(weights.values()))[0] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        write_target(weights, SMALL, END, tmp_path)


class Teacher:
    """Stands in for the teacher's tokenizer: texts by their first id."""

    def __init__(self, texts: dict[int, str]):
        self.texts = texts

    def decode_batch(self, pieces: list[list[int]], skip_special_tokens: bool) -> list[str]:
        return [self.texts[piece[0]] for piece in pieces]


def test_only_finished_pairs_without_loops_are_read():
    texts = {10: "system\nBe good", 11: "user\nHow?", 12: "assistant\nSo.", 13: "user\nWhy?", 14: "assistant\nAs as as"}
    ids = np.array([[1, 10, 2, 1, 11, 2, 1, 12, 2, 1, 13, 2, 1, 14, 2, 1, 13, 2, 1, 12, 2, 1, 11, 2, 1, 12, 9]])
    looping = np.zeros(ids.shape, bool)
    looping[0, 13] = True
    assert read_chats(ids, looping, Teacher(texts)) == [[("How?", "So.")], [("Why?", "So.")]]


def test_chats_that_say_a_held_out_prompt_are_left_out():
    chats = [[("Name seven birds, please.", "Owl.")], [("Name a fish.", "Cod.")]]
    assert without(chats, ["Name seven birds"]) == chats[1:]


def test_rows_begin_with_a_pair_and_a_cut_pair_begins_the_next():
    rows = pack([[1, 9, 9], [1, 8, 8, 8], [1, 7], [1, 6, 6, 6, 6, 6, 6]], 5)
    assert rows.tolist() == [[1, 9, 9, 1, 8], [1, 8, 8, 8, 1], [1, 7, 1, 6, 6]]


def test_prompts_are_what_the_chat_template_makes_of_them():
    tokenizer = train_tokenizer([("one two three", "four five six")] * 4, 300)
    (ids,) = prompt_ids(tokenizer, ["one five"])
    assert (ids[0], *ids[-2:]) == (USER, END, ASSISTANT)
    assert tokenizer.decode(ids, skip_special_tokens=False) == "<|user|>one five<|end|><|assistant|>"


def test_offsets_count_from_the_prompt_to_the_first_end():
    ids = torch.tensor([[1, END, 2, 7, 8, END, 9, END], [1, 2, 7, 7, 7, 7, 7, 7]])
    assert answer_offsets(ids, torch.tensor([3, 2])).tolist() == [[0, 0, 0, 1, 2, 3, 0, 0], [0, 0, 1, 2, 3, 4, 5, 6]]


def test_written_answers_are_the_targets_own_choices():
    torch.manual_seed(5)
    model = Hybrid(initial(SMALL, torch.device("cpu")), SMALL)
    prompts = [[1, 20, 30, 0, 2], [1, 40, 0, 2]]
    for _ in range(2):
        ids, offsets = Writer(model, 3, 24).write(prompts)
    assert [row[: len(prompt)] for row, prompt in zip(ids.tolist(), prompts, strict=True)] == prompts
    choices = torch.nn.functional.linear(model(ids)[0], model.embedding).argmax(-1)
    for row, prompt in enumerate(prompts):
        assert torch.equal(ids[row, len(prompt) :], choices[row, len(prompt) - 1 : -1])
    assert offsets.max() > 0
