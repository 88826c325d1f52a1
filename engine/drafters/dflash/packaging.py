"""Which packaging a draft checkpoint has, found in one order; whatever it is, its config leaves here in one spelling.

The spelling is z-lab's: sizes at the top, target_layer_ids counted from 0, the rest at the top or in ``dflash_config``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelError
from engine.models.checkpoint import Config

SECTION = "dflash_config"
FIRST, SECOND = "DFlashDraftModel", "DFlash2DraftModel"
DEEPSPEC = "Qwen3DSparkModel"  # DeepSpec names its DFlash drafts so too: without the heads they are nothing but DFlash
# Other kinds of drafter, by what their names hold; the longer names first.
OTHERS = {"dspark": "DSpark", "peagle": "P-EAGLE", "p-eagle": "P-EAGLE", "eagle3": "EAGLE-3", "eagle": "EAGLE", "mtp": "MTP",
          "domino": "Domino"}  # fmt: skip
SHARED = ("block_size", "mask_token_id", "target_hidden_size", "quantization", "conv_kernel_size", "conv_group_size",
          "selector_rank", "selector_top_k")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Packaging:
    """``second``: DFlash 2. ``first_slot``: the block slot that predicts the token after the anchor, 1 where slot k stands for
    the token k places on, 0 where the draft samples from the anchor itself. ``window_from_anchor``: a sliding window counts
    from the anchor for every slot, not from the slot.
    """

    config: Config
    second: bool
    first_slot: int
    window_from_anchor: bool


def read_packaging(folder: Path) -> Packaging:
    """Reads config.json; ``ModelError`` where it is not that of a DFlash draft, naming what it is."""
    return packaging_of(Config.read(folder))


def packaging_of(config: Config) -> Packaging:
    """The same for a config.json that is read already."""
    names = config.get("architectures", list, [])
    section = config.get(SECTION, dict)
    if "speculators_model_type" in config.values or "speculators_config" in config.values:
        return _speculators(config)
    if DEEPSPEC in names and config.get("markov_rank", int) == 0 and not config.get("enable_confidence_head", bool):
        return Packaging(config, second=False, first_slot=0, window_from_anchor=False)
    other = _other_kind(config, names, section or {})
    if other:
        raise _refused(config, other)
    second = SECOND in names or bool((section or {}).get("selector_rank"))
    if not second and FIRST not in names and (names or section is None):
        raise _refused(config, None)
    shifted = config.get("shift_label", bool, False, (SECTION,))
    return Packaging(config, second, 0 if shifted else 1, window_from_anchor=False)


def _other_kind(config: Config, names: list[Any], section: dict[str, Any]) -> str | None:
    """The drafter this is instead, or None. A DFlash body with a Markov head is DSpark under another name."""
    projector = config.get("projector_type", str, "dflash", (SECTION,))
    for word in [*map(str, names), *([] if projector == "dflash" else [projector])]:
        found = next((kind for part, kind in OTHERS.items() if part in word.lower()), None)
        if found:
            return found
    if config.values.get("markov_rank") or section.get("markov_rank") or any(key.startswith("dspark_") for key in config.values):
        return "DSpark"
    modes = section.get("attention_modes") or [section.get("attention_mode") or "gqa"]
    unknown = [str(mode) for mode in modes if str(mode).lower() not in ("gqa", "mha")] if isinstance(modes, list) else [str(modes)]
    if unknown or projector != "dflash":
        return f"DFlash with {f'{unknown[0]} attention' if unknown else f'a {projector} head'}"
    return None


def _refused(config: Config, kind: str | None) -> ModelError:
    names = ", ".join(map(str, config.get("architectures", list, []))) or config.get("model_type", str) or "unknown"
    what = f"is a draft of kind {kind}, not a DFlash draft" if kind else "is not a DFlash draft"
    return ModelError(f"{config.path.parent} {what} (found {names}): use a checkpoint of kind {FIRST} or {SECOND}.")


def _speculators(config: Config) -> Packaging:
    settings = config.get("speculators_config", dict, {})
    algorithm = config.get("speculators_model_type", str) or str(settings.get("algorithm"))
    if algorithm not in ("dflash", "dflash2"):
        raise _refused(config, next((kind for part, kind in OTHERS.items() if part in algorithm.lower()), algorithm))
    if config.get("projector_type", str, "dflash") != "dflash":
        raise _refused(config, OTHERS.get(config.values["projector_type"], config.values["projector_type"]))
    values = dict(config.need("transformer_layer_config", dict))
    values |= {key: config.values[key] for key in SHARED if config.values.get(key) is not None}
    # An id here counts layers that were run, so the output of layer k is k + 1.
    values["target_layer_ids"] = [tap - 1 if type(tap) is int else tap for tap in config.need("aux_hidden_state_layer_ids", list)]
    if config.get("sliding_window_non_causal", bool, algorithm == "dflash2") and values.get("is_causal") is None:
        values["is_causal"] = False
    return Packaging(
        Config(config.path, values),
        second=algorithm == "dflash2",
        first_slot=_speculators_first_slot(config, settings),
        window_from_anchor=True,
    )


def _speculators_first_slot(config: Config, settings: dict[str, Any]) -> int:
    """What the draft says it proposes decides; the flag has had different defaults, so it only counts where it is written."""
    methods = settings.get("proposal_methods")
    methods = [method for method in methods if isinstance(method, dict)] if isinstance(methods, list) else []
    preferred = [method for method in methods if method.get("proposal_type") == settings.get("default_proposal_method")]
    tokens = (preferred or methods or [{}])[0].get("speculative_tokens")
    unused = config.need("block_size", int) - tokens if type(tokens) is int else None
    if unused in (0, 1):
        return unused
    return 0 if config.get("sample_from_anchor", bool) or config.get("shift_label", bool) else 1
