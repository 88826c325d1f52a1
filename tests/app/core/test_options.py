"""The options of one chat: what may come out of a file, what the engine is asked for, and the presets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.options import BUILT_IN, ChatOptions, taken_otherwise, user_preset
from engine import GenerationRequest, Message, SparsePrefill

TURN = (Message("user", "Hi"),)


@given(st.dictionaries(st.sampled_from([*ChatOptions().values(), "other"]), st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2))))  # fmt: skip
def test_whatever_a_chat_file_holds_becomes_a_request_the_engine_takes(values):
    options = ChatOptions().with_values(values)
    GenerationRequest(options.turns(TURN), "auto", **options.request_fields())
    assert ChatOptions().with_values(options.values()) == options


def test_values_reach_the_request_unchanged():
    wanted = {
        "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repetition_penalty": 1.1, "presence_penalty": 0.2,
        "frequency_penalty": -0.3, "max_tokens": 77, "seed": 9, "thinking": False,
    }  # fmt: skip
    fields = ChatOptions().with_values({**wanted, "drop_oldest": True}).request_fields()
    assert fields == {**wanted, "overflow": "drop_oldest", "sparse": None, "exact": False, "use_cache": True}
    engine = ChatOptions().with_values({"sparse": 0.25, "exact": True, "use_cache": False}).request_fields()
    assert (engine["sparse"], engine["exact"], engine["use_cache"]) == (SparsePrefill(0.25), True, False)


def test_a_seed_that_is_not_set_is_another_one_each_time():
    options = ChatOptions(seed=None)
    assert len({options.request_fields()["seed"] for _ in range(20)}) > 15


def test_instructions_come_first_and_only_once():
    options = ChatOptions(system="Be brief.")
    assert options.turns(TURN) == (Message("system", "Be brief."), *TURN)
    assert options.turns(options.turns(TURN)) == options.turns(TURN)
    assert ChatOptions(system=" \n").turns(TURN) == TURN


def test_built_in_presets_keep_instructions_and_length_and_the_user_s_own_hold_everything():
    own = ChatOptions(system="Be brief.", max_tokens=50, presence_penalty=1.0)
    for preset in BUILT_IN:
        changed = own.with_values(preset.values)
        assert (changed.system, changed.max_tokens) == ("Be brief.", 50) and preset.built_in
    assert own.with_values(BUILT_IN[0].values).presence_penalty == 0.0
    mine = user_preset("  My \n own ", own.values())
    assert (mine.name, mine.built_in) == ("My own", False) and ChatOptions().with_values(mine.values) == own
    with pytest.raises(ValueError, match="name"):
        user_preset(" \n", {})


def test_one_unusable_value_costs_only_itself():
    options = ChatOptions().with_values(
        {"temperature": "warm", "top_k": 12, "min_p": float("nan"), "seed": "x", "max_tokens": 9e99}
    )
    assert (options.temperature, options.top_k, options.min_p, options.seed) == (0.0, 12, 0.0, 0)


@pytest.mark.parametrize("share", [0, -1, 1.5, float("nan"), "half", None, []])
def test_a_share_that_is_none_leaves_the_whole_prompt_to_be_read(share):
    assert ChatOptions().with_values({"sparse": share}).sparse == 1.0
    assert ChatOptions().with_values({"sparse": 0.5}).with_values({"sparse": share}).sparse == 0.5


def test_only_a_clear_yes_asks_for_exactness_and_only_a_clear_no_turns_the_cache_off():
    for values in ({"exact": "yes", "use_cache": 0}, {"exact": 1, "use_cache": None}, {"exact": [1], "use_cache": ""}):
        options = ChatOptions().with_values(values)
        assert (options.exact, options.use_cache) == (False, True)


def test_what_is_not_taken_as_it_came_is_named_and_what_is_is_not():
    whole = ChatOptions(system="Be brief.", temperature=0.5, sparse=0.25, exact=True, seed=None, thinking=True).values()
    assert taken_otherwise(whole) == [] and taken_otherwise({}) == []
    notes = taken_otherwise({"temperature": 99, "exact": "yes", "warp": 9, "system": "x" * 100_001, "top_k": 12})
    assert notes == [
        "option “temperature” cannot be 99", "option “exact” cannot be 'yes'", "option “warp” is unknown",
        "instructions were cut to 100,000 characters",
    ]  # fmt: skip
