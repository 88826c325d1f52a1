"""The contract with the pinned mlx-lm, family by family: when one of these fails after an update, the adapter must be looked at."""

from __future__ import annotations

import importlib.util
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx_lm.models import gated_delta, ssm
from mlx_lm.models.cache import ArraysCache, KVCache, QuantizedKVCache, RotatingKVCache, make_prompt_cache
from mlx_lm.utils import MODEL_REMAPPING

from engine.errors import ModelError
from engine.targets.attention import AttentionTarget, find_body
from engine.targets.gated_delta import GatedDeltaTarget
from engine.targets.mamba2 import Mamba2Target
from engine.targets.protocol import TargetShape
from engine.targets.recurrent import RecurrentTarget, causal_model, flat_entries, rebound
from engine.targets.registry import FAMILIES, make_target, supported_families
from engine.targets.short_conv import ShortConvTarget
from engine.targets.sliding_window import SlidingWindowTarget
from tests.engine.targets.hybrids import HYBRIDS
from tests.engine.targets.sliding_families import LAYERS, WRAPPED, sliding_config, sliding_model
from tests.engine.targets.test_attention import EXTRA
from tests.engine.tiny import VOCAB, build_target, target_config

# By adapter: the classes that a family's caches may be of, and what is stood in for or called on a recurrent module.
CACHES: dict[type[AttentionTarget], set[type]] = {
    AttentionTarget: {KVCache},
    SlidingWindowTarget: {KVCache, RotatingKVCache},
    GatedDeltaTarget: {KVCache, ArraysCache},
    ShortConvTarget: {KVCache, ArraysCache},
    Mamba2Target: {KVCache, ArraysCache},
}
WATCHED = {GatedDeltaTarget: ("conv1d",), ShortConvTarget: ("conv",), Mamba2Target: ("conv1d", "in_proj")}
CASES = [(adapter, family) for adapter, families in FAMILIES.items() for family in families]


def tiny_model(adapter: type[AttentionTarget], family: str) -> tuple[nn.Module, TargetShape]:
    """A random model of a supported family, by the name config.json gives it."""
    if adapter is SlidingWindowTarget:
        config = sliding_config(family)
        assert family in WRAPPED or config["model_type"] == family
        return sliding_model(config), TargetShape(32, VOCAB, LAYERS, 2048)
    changes = EXTRA.get(family, {}) if adapter is AttentionTarget else HYBRIDS[family][2]
    config = target_config(family, **changes)
    return build_target(config), TargetShape(32, VOCAB, config["num_hidden_layers"], 2048)


@pytest.mark.parametrize(("adapter", "family"), CASES, ids=[family for _, family in CASES])
def test_a_supported_family_is_built_as_its_adapter_expects(adapter: type[AttentionTarget], family: str) -> None:
    model, shape = tiny_model(adapter, family)
    target = make_target(model, family, shape)
    assert type(target) is adapter
    assert target.capabilities.taps and target.capabilities.rollback and target.capabilities.reason is None
    assert {type(entry) for entry in flat_entries(make_prompt_cache(model))} <= CACHES[adapter]
    layers = target._body["layers"]
    assert isinstance(layers, list) and len(layers) == shape.num_layers
    output = target.forward(mx.array([1, 2, 3]), target.make_cache(), (0, shape.num_layers - 1))
    assert output.logits.shape == (3, VOCAB) and output.taps is not None and output.taps.shape == (3, 2 * shape.hidden_size)
    embedded = target.embed(mx.array([1, 2]))
    assert embedded.shape == (2, shape.hidden_size) and target.head(embedded).shape == (2, VOCAB)


RECURRENT = [(adapter, family) for adapter, family in CASES if adapter in WATCHED]


@pytest.mark.parametrize(("adapter", "family"), RECURRENT, ids=[family for _, family in RECURRENT])
def test_a_recurrent_module_has_the_parts_that_are_stood_in_for(adapter: type[RecurrentTarget], family: str) -> None:
    model, _ = tiny_model(adapter, family)
    places = adapter.mixers(causal_model(model))
    recurrent = sum(type(entry) is ArraysCache for entry in flat_entries(make_prompt_cache(model)))
    assert len(places) == recurrent > 0
    for layer, name in places:
        assert type(layer[name]) in adapter.replays
        assert all(isinstance(layer[name].get(part), nn.Module) for part in WATCHED[adapter])


def test_the_functions_of_the_recurrences_are_called_as_before() -> None:
    update = ["q", "k", "v", "a", "b", "A_log", "dt_bias", "state", "mask", "use_kernel", "lower_bound", "allow_neg_eigval"]
    assert list(inspect.signature(gated_delta.gated_delta_update).parameters) == update
    assert list(inspect.signature(gated_delta.compute_g).parameters) == ["A_log", "a", "dt_bias"]
    scan = ["hidden_states", "A_log", "B", "C", "D", "dt", "dt_bias", "state", "time_step_limit"]
    assert list(inspect.signature(ssm.ssm_update).parameters)[: len(scan)] == scan
    for mixer in GatedDeltaTarget.replays:
        assert "gated_delta_update" in mixer.__call__.__code__.co_names


def test_a_forward_that_no_longer_calls_what_is_handed_to_us_is_named() -> None:
    with pytest.raises(RuntimeError, match="Linear no longer calls gated_delta_update"):
        rebound(nn.Linear(2, 2), "gated_delta_update", None)


def test_plain_and_quantised_caches_have_what_we_use() -> None:
    for kind in (KVCache, QuantizedKVCache):
        assert all(hasattr(kind, name) for name in ("trim", "keys_and_values", "empty", "update_and_fetch", "make_mask"))
    assert list(inspect.signature(QuantizedKVCache.__init__).parameters) == ["self", "group_size", "bits"]


def test_mlx_lm_is_pinned_to_the_version_these_tests_ran_with() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"mlx-lm=={version('mlx-lm')}" in project["dependencies"]


def test_the_list_of_families_names_each_once_and_none_that_mlx_lm_lacks() -> None:
    names = supported_families()
    assert list(names) == sorted(set(names)) and len(names) == len(CASES)
    for name in names:
        assert importlib.util.find_spec(f"mlx_lm.models.{MODEL_REMAPPING.get(name, name)}"), name


@pytest.mark.parametrize(("family", "changes", "why", "way"), [
    ("mamba", {"state_size": 8, "conv_kernel": 4, "use_bias": False, "use_conv_bias": True, "time_step_rank": 4,
               "intermediate_size": 64, "expand": 2}, "cache is not plain key/value (ArraysCache)", "run plainly"),
    ("gpt2", {"n_embd": 32, "n_head": 4, "n_layer": 4, "n_positions": 64, "layer_norm_epsilon": 1e-5, "n_ctx": 64},
     "layers are not laid out", "run with lookup drafting"),
])  # fmt: skip
def test_a_family_without_a_draft_runs_and_names_those_with_one(family: str, changes: dict, why: str, way: str) -> None:
    target = make_target(build_target(target_config(family, **changes)), family, TargetShape(32, VOCAB, 4, 64))
    reason = target.capabilities.reason
    assert reason is not None and f"{family!r} models {way}" in reason and why in reason
    assert ", ".join(supported_families()) in reason
    assert target.forward(mx.array([1, 2]), target.make_cache()).logits.shape[0] == 2
    with pytest.raises(ModelError, match="without kv_bits"):
        target.quantise_cache(8)


def test_find_body_is_what_holds_the_layers_of_wrapped_families() -> None:
    for family in WRAPPED:
        assert isinstance(find_body(sliding_model(sliding_config(family)))["layers"], list)
