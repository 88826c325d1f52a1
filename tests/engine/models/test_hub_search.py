"""Searching the hub, and finding the draft that belongs to a target, also to a conversion of it."""

from __future__ import annotations

import re

import pytest

from engine.errors import UnknownModel
from engine.models import Downloader, DownloadPlan, hub_client, plan_download, read_token, resolve_pair, search_hub
from engine.models.catalog import CatalogPair
from engine.models.download_types import DownloadProblem
from engine.models.pairing import draft_matches, plain_name
from engine.targets.families import known_families, supported_families
from tests.hub_server import Fault, HubServer
from tests.remote_models import QWEN3, add_model

DRAFT = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "hidden_size": 64, "vocab_size": 500, "num_target_layers": 4,
         "num_hidden_layers": 2, "dflash_config": {"target_layer_ids": [0, 2], "mask_token_id": 5}}  # fmt: skip


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> CatalogPair:
    """A catalog with one pair: a conversion of org/base, and its draft."""
    names = ("org/base", "org/base-4bit", "labs/base-DFlash")
    sizes = [None] * 6
    pair = CatalogPair("pair", "Pair", "A pair.", "qwen3", "4-bit", *names, 16, *sizes, "MIT", False)
    for module in ("planning", "pairing", "fit", "catalog"):  # the last: the others are imported with what it has
        monkeypatch.setattr(f"engine.models.{module}.read_catalog", lambda: [pair])
    return pair


def test_every_family_that_mlx_lm_runs_is_supported() -> None:
    from mlx_lm.utils import MODEL_REMAPPING

    assert {"phi3", "gemma2", "mixtral", "qwen3", *MODEL_REMAPPING} <= known_families()
    assert set(supported_families()) < known_families() and "exotic" not in known_families()


def test_a_search_tells_what_a_choice_needs(hub: HubServer, catalog: CatalogPair) -> None:
    add_model(hub, "org/base-4bit", downloads=5, tags=("license:mit", "base_model:org/base"))
    add_model(hub, "someone/base-6bit", downloads=50, tags=("base_model:org/base", "base_model:quantized:org/base"), gated=True)
    add_model(hub, "org/other-base", config=QWEN3 | {"model_type": "exotic"}, downloads=7)
    add_model(hub, "labs/base-DFlash", config=DRAFT, downloads=500)
    found = {model.repository: model for model in search_hub("base")}
    assert list(found) == ["someone/base-6bit", "org/other-base", "org/base-4bit"], "most downloaded first, drafts left out"
    assert found["org/base-4bit"].licence == "mit" and found["org/base-4bit"].draft == "labs/base-DFlash"
    conversion = found["someone/base-6bit"]
    assert (conversion.gated, conversion.family, conversion.supported) == (True, "qwen3", True)
    assert conversion.draft == "labs/base-DFlash"
    assert conversion.size_bytes == pytest.approx(200_000, rel=0.01)
    assert (found["org/other-base"].supported, found["org/other-base"].draft) == (False, None)
    assert [model.repository for model in search_hub("base", limit=1)] == []
    assert search_hub("nothing like it") == []


def test_a_pair_of_the_catalog_is_fetched_with_its_draft(hub: HubServer, catalog: CatalogPair) -> None:
    add_model(hub, "org/base-4bit")
    add_model(hub, "labs/base-DFlash", config=DRAFT)
    plan = plan_download("pair")
    assert (plan.id, plan.name, plan.draft, plan.no_draft_reason) == ("pair", "Pair", "labs/base-DFlash", None)
    assert plan_download("org/base-4bit").id == plan_download("org/base-4bit+labs/base-DFlash").id == "pair"
    Downloader(plan).run()
    pair = resolve_pair("pair")
    assert pair.draft is not None and pair.target != pair.draft and pair.block_length == 16


def test_a_conversion_gets_the_draft_of_what_it_was_made_from(hub: HubServer, catalog: CatalogPair) -> None:
    add_model(hub, "someone/base-6bit", tags=("base_model:quantized:org/base",))
    add_model(hub, "labs/base-DFlash", config=DRAFT)
    plan = plan_download("someone/base-6bit")
    assert plan.id == "someone/base-6bit+labs/base-DFlash" and plan.repositories == ("someone/base-6bit", "labs/base-DFlash")
    assert plan_download("someone/base-6bit", with_draft=False).draft is None


@pytest.mark.parametrize("name", ["lab/thing-9B-DFlash", "lab/thing-9B-DFlash-b16", "lab/thing-9B-speculator.dflash"])
def test_a_draft_that_the_catalog_does_not_know_is_found_by_its_name(hub: HubServer, catalog: CatalogPair, name: str) -> None:
    add_model(hub, "mlx/thing-9B-4bit")
    add_model(hub, name, config=DRAFT)
    assert plan_download("mlx/thing-9B-4bit").draft == name


@pytest.mark.parametrize(
    "draft",
    [DRAFT | {"hidden_size": 128}, DRAFT | {"vocab_size": 999}, DRAFT | {"num_target_layers": 9}, QWEN3],
    ids=["hidden size", "vocabulary", "layers", "no draft at all"],
)
def test_a_draft_whose_numbers_do_not_fit_is_not_taken(hub: HubServer, catalog: CatalogPair, draft: dict) -> None:
    add_model(hub, "mlx/thing-9B-4bit")
    add_model(hub, "lab/thing-9B-DFlash", config=draft)
    plan = plan_download("mlx/thing-9B-4bit")
    assert plan.draft is None and plan.no_draft_reason is not None and "lookup" in plan.no_draft_reason
    assert plan.id == "mlx/thing-9B-4bit" and len(plan.repositories) == 1


def test_a_draft_for_another_model_with_a_longer_name_is_not_taken(hub: HubServer, catalog: CatalogPair) -> None:
    add_model(hub, "mlx/thing-4bit")
    add_model(hub, "lab/thing-coder-DFlash", config=DRAFT)
    assert plan_download("mlx/thing-4bit").draft is None


def test_a_gated_draft_does_not_stop_its_target(hub: HubServer, catalog: CatalogPair) -> None:
    add_model(hub, "mlx/thing-9B-4bit")
    add_model(hub, "lab/thing-9B-DFlash", config=DRAFT, gated=True)
    assert read_token() is None
    assert plan_download("mlx/thing-9B-4bit").draft is None


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("mlx-community/Qwen3.5-27B-4bit", "Qwen3.5-27B"),
        ("mlx-community/Qwen3.5-4B-MLX-4bit", "Qwen3.5-4B"),
        ("a/gpt-oss-20b-MXFP4-Q8", "gpt-oss-20b"),
        ("a/Model-8bit-DWQ", "Model"),
        ("a/Qwen3-Coder-Next", "Qwen3-Coder-Next"),
        ("a/m-3.5bit", "m"),
    ],
)
def test_what_a_conversion_adds_to_a_name_is_known(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_numbers_of_nested_configs_are_compared() -> None:
    draft = {"speculators_config": {}, "transformer_layer_config": {"hidden_size": 64, "vocab_size": 500}}
    assert draft_matches(draft, {"text_config": QWEN3, "hidden_size": 1})
    assert not draft_matches(draft, {"text_config": QWEN3 | {"hidden_size": 65}})


@pytest.mark.parametrize("wanted", ["", "  ", "one", "a/b/c", "a/b+", "+a/b", "a/b+c", "starter", "../x", "a/b c"])
def test_what_names_no_repository_is_refused_without_asking(hub: HubServer, wanted: str) -> None:
    with pytest.raises(UnknownModel):
        plan_download(wanted)
    assert hub.seen == []


def test_a_repository_without_a_model_that_runs_says_what_to_choose(hub: HubServer) -> None:
    hub.add("org/only-gguf", {"model-Q4_K_M.gguf": b"GGUF", "README.md": "x"})
    hub.add("org/torch", {"config.json": "{}", "pytorch_model.bin": b"x"})
    with pytest.raises(Exception, match="import that"):
        plan_download("org/only-gguf")
    with pytest.raises(Exception, match="MLX conversion"):
        plan_download("org/torch")


def test_only_what_is_read_of_a_repository_is_fetched(hub: HubServer, catalog: CatalogPair) -> None:
    add_model(hub, "org/model")
    hub.repositories["org/model"].files |= {
        "onnx/model.onnx": b"x", "original/consolidated.safetensors": b"x", "consolidated.safetensors": b"x", "picture.png": b"x",
        "chat_template.jinja": b"t", "tokenizer.json": b"{}", "tokenizer.model": b"m", "LICENSE": b"l", "run.py": b"x",
    }  # fmt: skip
    plan: DownloadPlan = plan_download("org/model")
    assert {file.path for file in plan.files} == {"README.md", "config.json", "model.safetensors", "chat_template.jinja",
                                                  "tokenizer.json", "tokenizer.model", "LICENSE"}  # fmt: skip


@pytest.mark.parametrize("address", ["example", "ftp://example", "https://", "http://[", "https://exa mple"])
def test_an_address_that_is_none_is_named(hub: HubServer, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(DownloadProblem, match=rf"^{re.escape(address.rstrip('/'))} cannot be reached: check HF_ENDPOINT"):
        search_hub("model")


def test_a_password_in_the_hubs_address_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://me:SECRET@mirror.example:8443")
    assert hub_client.host() == "mirror.example:8443"


def test_a_network_that_only_leads_to_its_login_page_is_told(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_client, "FIRST_WAIT_S", 0.01)
    circle = Fault("status", status=302, headers={"Location": f"{hub.address}/api/models", "Connection": "close"})
    hub.api_faults.extend([circle] * 100)
    with pytest.raises(DownloadProblem, match="an answer that is not the hub's: if this network has a login page, log in"):
        search_hub("model")
