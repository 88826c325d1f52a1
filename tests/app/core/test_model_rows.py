"""The rows of the Models window: each model once, what fits first, and only what can be done is offered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.core.downloads import Download
from app.core.model_rows import Shelf, disk_rows, model_rows, standing_alone
from engine.models.download_types import DownloadPlan
from engine.models.entries import PairEntry
from engine.models.paths import models_folder
from engine.models.store_types import Fit, HubModel, InstalledModel

STARTER = PairEntry("starter", "Starter", "", "ready", 1, 1, "built-in", "built-in")
LARGE = PairEntry("large", "Large", "", "not set up", 0, 20_000_000_000, "org/large", "org/large-DFlash", licence="MIT", gated=True)
SMALL = PairEntry("small", "Small", "", "not set up", 0, 2_000_000_000, "org/small", None, licence="MIT")
NO, FITS = Fit(2, 1, "no", "needs more"), Fit(1, 2, "fits", "fits")


def plan(name: str, *repositories: str) -> DownloadPlan:
    return DownloadPlan(name, name, repositories, (), 10, 0, None, "No draft is known")


def here(name: str, source="hub cache", state="ready", **settings) -> InstalledModel:
    return InstalledModel(name, source, settings.pop("path", Path("/models") / name), 5, state, **settings)


def row(shelf: Shelf, name: str, downloads=()):
    (found,) = [row for row in model_rows(shelf, downloads) if row.id == name]
    return found


def test_what_fits_comes_first_and_what_does_not_says_so_on_its_button():
    shelf = Shelf((STARTER, LARGE, SMALL), fits={"large": NO, "small": FITS})
    assert [row.id for row in model_rows(shelf, [])] == ["starter", "small", "large"]
    assert row(shelf, "small").actions == ("get",) and row(shelf, "large").actions == ("get anyway",)
    assert row(shelf, "large").facts == ("20.0\u00a0GB", "MIT", "asks for consent")


def test_a_model_without_a_draft_says_how_it_runs():
    shelf = Shelf((LARGE, SMALL))
    assert row(shelf, "small").draft == "No draft: runs with lookup."
    assert row(shelf, "large").draft == "Comes with its draft org/large-DFlash."


@pytest.mark.parametrize(
    ("stage", "actions"),
    [
        ("asking", ("pause", "cancel")),
        ("queued", ("pause", "cancel")),
        ("running", ("pause", "cancel")),
        ("waiting", ("resume", "pause", "cancel")),
        ("paused", ("resume", "cancel")),
        ("failed", ("resume", "cancel")),
        ("cancelling", ()),
    ],
)
def test_a_download_stands_in_place_of_its_pair_and_offers_what_can_be_done(stage, actions):
    rows = model_rows(Shelf((STARTER, SMALL)), [Download("small", stage, plan("small", "org/small"))])
    assert [(row.id, row.group) for row in rows] == [("small", "downloads"), ("starter", "ready")]
    assert rows[0].actions == actions and rows[0].name == "Small"


def test_a_download_of_a_model_that_the_hub_found_is_shown_once():
    found = HubModel("org/new", 1, 10, False, "mit", "llama", True, None)
    rows = model_rows(Shelf(found=(found,)), [Download("org/new+org/draft", "running", plan("org/new+org/draft", "org/new"))])
    assert [row.id for row in rows] == ["org/new+org/draft"]


def test_a_model_that_is_here_is_listed_once_also_when_the_hub_has_found_it():
    found = HubModel("org/alone", 1, 10, False, "mit", "llama", True, None)
    assert [(row.id, row.group) for row in model_rows(Shelf(installed=(here("org/alone"),), found=(found,)), [], "alone")] == [
        ("org/alone", "ready")
    ]


def test_that_a_download_has_no_draft_is_said_once():
    alone = replace(plan("org/new", "org/new"), no_draft_reason="No draft is known for new: it runs with lookup")
    (only,) = model_rows(Shelf(), [Download("org/new", "running", alone)])
    assert only.draft == "No draft is known for new: it runs with lookup."


def test_the_starter_is_never_deleted_and_a_ready_pair_can_be():
    ready = PairEntry("small", "Small", "", "ready", 5, 5, "org/small", None)
    shelf = Shelf((STARTER, ready))
    assert row(shelf, "starter").actions == ("chat", "options", "verify")
    assert row(shelf, "small").actions == ("chat", "options", "verify", "repair", "delete")


def test_a_model_of_a_ready_pair_is_listed_with_the_pair_only():
    ready = PairEntry("small", "Small", "", "ready", 5, 5, "org/small", None)
    shelf = Shelf((ready,), (here("org/small", used_by=("small",)), here("org/alone"), here("org/draft", is_draft=True)))
    assert [model.id for model in standing_alone(shelf)] == ["org/alone"]
    assert [row.id for row in model_rows(shelf, [])] == ["small", "org/alone"]
    assert [row.id for row in disk_rows(shelf)] == ["org/small", "org/alone", "org/draft"]


def test_a_model_whose_draft_is_here_is_chatted_with_as_a_pair():
    shelf = Shelf(installed=(here("org/alone"), here("org/alone-DFlash", is_draft=True)), drafts={"org/alone": "org/alone-DFlash"})
    assert row(shelf, "org/alone").loads == "org/alone+org/alone-DFlash"
    assert row(shelf, "org/alone").draft == "Comes with its draft org/alone-DFlash."
    assert row(Shelf(installed=(here("org/alone"),)), "org/alone").loads == "org/alone"


@pytest.mark.parametrize(
    ("model", "actions", "source"),
    [
        (here("org/a"), ("chat", "options", "verify", "repair", "delete"), "hub cache"),
        (here("org/a", state="incomplete", problem="cut short"), ("verify", "repair", "delete"), "hub cache"),
        (here("org/a", is_draft=True), ("verify", "repair", "delete"), "hub cache"),
        (here("org/a", "lm studio"), ("chat", "options"), "LM Studio"),
        (here("/m/a.gguf", "lm studio", "importable", path=Path("/m/a.gguf")), ("import",), "LM Studio"),
        (here("/m/a.gguf", "lm studio", "unsupported", path=Path("/m/a.gguf")), (), "LM Studio"),
        (here("/m/mine", "folder", path=Path("/m/mine")), ("chat", "options", "forget"), "your folder"),
        (here("starter", "slipstream"), ("chat", "options", "verify"), "Slipstream"),
        (here("made", "folder", path=models_folder() / "made"), ("chat", "options", "verify", "delete"), "imported"),
    ],
)
def test_only_what_can_be_done_with_a_model_is_offered(model, actions, source):
    (found,) = disk_rows(Shelf(installed=(model,)))
    assert found.actions == actions and found.facts[-1] == source


def test_a_family_that_does_not_run_here_is_not_offered():
    found = HubModel("org/mamba", 1, 10, False, "mit", "mamba", False, None)
    (only,) = model_rows(Shelf(found=(found,)), [])
    assert only.actions == () and "do not run here" in only.draft


def test_a_family_that_runs_without_a_draft_only_is_offered_and_said():
    found = HubModel("org/phi", 1, 10, False, "mit", "phi3", True, None, takes_draft=False)
    (only,) = model_rows(Shelf(found=(found,)), [])
    assert only.actions == ("get",) and only.draft == "Runs without a draft."


def test_a_search_keeps_the_rows_that_have_all_its_words_and_everything_that_is_fetched():
    shelf = Shelf((STARTER, LARGE, SMALL))
    downloads = [Download("other", "running", plan("other", "org/other"))]
    assert [row.id for row in model_rows(shelf, downloads, "small mit")] == ["other", "small"]


def test_a_row_is_spoken_in_one_sentence():
    shelf = Shelf((SMALL,), fits={"small": FITS})
    assert row(shelf, "small").spoken == "Small, 2.0\u00a0GB, MIT, fits"
