"""Whole runs on a tiny model: what is written, what a stop or a kill leaves, and every way of asking wrongly."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest

from engine import Finished, GenerationRequest, load
from engine.cli import main
from engine.errors import Cancelled, RequestError, SlipstreamError
from engine.models import ResolvedPair
from engine.request import Message
from engine.training.run import Source, TrainingRun, Workshop
from engine.training.selfplay import Writer, first_words, invent_prompts
from engine.training.settings import (
    DataProgress,
    DraftPlan,
    Evaluated,
    TrainingEvent,
    TrainingFinished,
    TrainingSettings,
    TrainingStep,
)
from engine.training.trainer import Trainer
from tests.engine.tiny import copy_tokenizer, write_target

SETTINGS = TrainingSettings(steps=12, rows=2, slots=32, rate=1e-2, warm_up=2, evaluate_every=4, held_out=2, max_length=80)
PLAN = DraftPlan(layers=1, block_length=8, vocabulary=512)
CHATS = tuple((Message("user", f"Say something about number {number}."),) for number in range(10))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> Workshop:
    folder = write_target(tmp_path_factory.mktemp("shop") / "target", vocab_size=49152, num_hidden_layers=5)
    return Workshop.load(copy_tokenizer(starter.target, folder))


def run(shop: Workshop, output: Path, settings: TrainingSettings = SETTINGS, **changes: object) -> list[TrainingEvent]:
    arguments = {"plan": PLAN, **changes}
    return list(TrainingRun(shop, output, settings, Source(CHATS), **arguments).events())  # type: ignore[arg-type]


def losses(events: list[TrainingEvent]) -> dict[int, float]:
    return {event.step: event.loss for event in events if isinstance(event, TrainingStep)}


def test_a_run_leaves_a_draft_that_the_engine_loads_and_whose_text_is_the_targets_own(shop: Workshop, tmp_path: Path) -> None:
    events = run(shop, tmp_path / "draft")
    end = events[-1]
    assert isinstance(end, TrainingFinished) and end.reason == "done" and end.steps == 12 and end.peak_bytes > 0
    judged = [event for event in events if isinstance(event, Evaluated)]
    assert [event.step for event in judged] == [4, 8, 12]
    assert end.best == max(event.tau for event in judged) and end.best_step in (4, 8, 12)
    assert sorted(file.name for file in (tmp_path / "draft").iterdir()) == ["config.json", "model.safetensors"]
    engine = load(f"{shop.folder}+{tmp_path / 'draft'}")
    texts = {}
    for mode in ("baseline", "dflash"):
        *_, answer = engine.generate(GenerationRequest.of("Say something.", mode=mode, max_tokens=40))  # type: ignore[arg-type]
        assert isinstance(answer, Finished)
        texts[mode] = answer.token_ids
    assert engine.info.draft_name == "draft" and texts["baseline"] == texts["dflash"]
    engine.close()


def test_a_run_that_was_killed_goes_on_at_its_last_saved_step_with_the_same_losses(shop: Workshop, tmp_path: Path) -> None:
    whole = losses(run(shop, tmp_path / "whole"))
    begun = TrainingRun(shop, tmp_path / "cut", SETTINGS, Source(CHATS), plan=PLAN).events()
    for event in begun:
        if isinstance(event, TrainingStep) and event.step == 7:
            break  # as a kill would: nothing after the state saved at step 4 is written
    begun.close()
    later = losses(run(shop, tmp_path / "cut"))
    assert sorted(later) == list(range(5, 13))
    assert later == {step: whole[step] for step in later}
    ours, theirs = (mx.load(str(tmp_path / name / "model.safetensors")) for name in ("cut", "whole"))
    assert all(mx.array_equal(ours[key], theirs[key]).item() for key in theirs)  # type: ignore[index, call-overload]


def test_a_stopped_run_keeps_its_best_draft_and_can_be_gone_on_with(shop: Workshop, tmp_path: Path) -> None:
    cancel = threading.Event()
    events = []
    for event in TrainingRun(shop, tmp_path, SETTINGS, Source(CHATS), plan=PLAN, cancel=cancel).events():
        events.append(event)
        if isinstance(event, TrainingStep) and event.step == 5:
            cancel.set()
    end = events[-1]
    assert isinstance(end, TrainingFinished) and end.reason == "cancelled" and end.steps == 5
    assert (tmp_path / "model.safetensors").exists() and (tmp_path / "run-state.safetensors").exists()
    assert min(losses(run(shop, tmp_path))) == 6


def test_a_folder_with_another_runs_state_is_not_written_over(shop: Workshop, tmp_path: Path) -> None:
    for event in TrainingRun(shop, tmp_path, SETTINGS, Source(CHATS), plan=PLAN).events():
        if isinstance(event, TrainingStep) and event.step == 5:
            break
    other = replace(SETTINGS, seed=9)
    with pytest.raises(RequestError, match=r"unfinished run with other settings: give --restart"):
        run(shop, tmp_path, other)
    again = TrainingRun(shop, tmp_path, other, Source(CHATS), plan=PLAN)
    again.forget()
    assert isinstance(list(again.events())[-1], TrainingFinished)


def test_a_damaged_state_begins_the_run_anew(shop: Workshop, tmp_path: Path) -> None:
    for event in TrainingRun(shop, tmp_path, SETTINGS, Source(CHATS), plan=PLAN).events():
        if isinstance(event, TrainingStep) and event.step == 5:
            break
    (tmp_path / "run-state.safetensors").write_bytes(b"\0" * 40)
    assert min(losses(run(shop, tmp_path))) == 1


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_best_draft(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Trainer.update

    def poisoned(self: Trainer, steps: int | None):  # type: ignore[no-untyped-def]
        if self.step == 6:
            self.masters["norm.weight"] = self.masters["norm.weight"] * float("nan")
        return update(self, steps)

    monkeypatch.setattr(Trainer, "update", poisoned)
    events = run(shop, tmp_path)
    end = events[-1]
    assert isinstance(end, TrainingFinished) and end.reason == "diverged" and end.steps == 7
    weights = mx.load(str(tmp_path / "model.safetensors"))
    assert all(mx.isfinite(value).all().item() for name, value in weights.items() if name != "d2t")  # type: ignore[union-attr]


def test_continuing_from_a_draft_counts_what_it_could_before(shop: Workshop, tmp_path: Path) -> None:
    first = run(shop, tmp_path / "first")[-1]
    second = run(shop, tmp_path / "second", first=tmp_path / "first")[-1]
    assert isinstance(first, TrainingFinished) and isinstance(second, TrainingFinished)
    assert first.before == 1.0 and second.before == pytest.approx(first.best, abs=0.2)
    assert second.best >= second.before


@pytest.mark.slow
def test_a_run_with_a_time_limit_plans_as_many_steps_as_fit(shop: Workshop, tmp_path: Path) -> None:
    timed = replace(SETTINGS, steps=None, seconds=4.0, evaluate_every=1000)
    end = run(shop, tmp_path, timed)[-1]
    assert isinstance(end, TrainingFinished) and end.steps > 11
    planned = [event.steps for event in run(shop, tmp_path / "b", timed) if isinstance(event, TrainingStep)]
    assert planned[0] is None and planned[-1] is not None and len(set(planned[11:])) == 1


def test_a_draft_that_cannot_be_made_is_refused_before_any_text_is_written(shop: Workshop, tmp_path: Path) -> None:
    for wrong in ({"plan": replace(PLAN, taps=(1, 99))}, {"mask": 10**6}, {"first": tmp_path / "none"}):
        with pytest.raises(SlipstreamError):
            next(TrainingRun(shop, tmp_path / "draft", SETTINGS, Source(CHATS), **{"plan": PLAN, **wrong}).events())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("[metal::malloc] Attempting to allocate 9 bytes", SlipstreamError),
        ("cudaMallocAsync(&data, size, stream) failed: out of memory", SlipstreamError),
        ("cudaLaunchHostFunc failed: an illegal memory access was encountered", RuntimeError),
    ],
)
def test_only_memory_that_ran_out_is_called_that(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(Trainer, "update", fail)
    with pytest.raises(error, match="Memory ran out" if error is SlipstreamError else "illegal"):
        run(shop, tmp_path / "draft")


def test_stopping_while_texts_are_written_changes_nothing(shop: Workshop, tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        run(shop, tmp_path / "draft", cancel=cancel)
    assert not list((tmp_path / "draft").iterdir())


def test_invented_questions_are_the_same_for_one_seed_and_each_is_asked_once(
    starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.training.selfplay.USER_LIMIT", 20)
    real = Workshop.load(starter.target)

    def invented() -> list[tuple[int, ...]]:
        items = invent_prompts(Writer(real.target, real.stop_ids), real.tokenizer, 4, seed=3)
        return [tuple(item) for item in items if not isinstance(item, DataProgress)]

    first = invented()
    assert 1 <= len(first) == len(set(first)) and first == invented()
    assert all("<|im_start|>user\n" in real.tokenizer.decode(ids) for ids in first)


def test_nothing_to_learn_from_is_said_at_once(shop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"nothing to learn from: give --data"):
        TrainingRun(shop, tmp_path, SETTINGS, Source())


@pytest.mark.parametrize(
    "wrong",
    [{"rows": 0}, {"steps": 0}, {"rate": 0.0}, {"rate": float("nan")}, {"seconds": float("inf"), "steps": None}, {"max_length": 5}],
)
def test_settings_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(RequestError, match=r"choose|give"):
        replace(SETTINGS, **wrong)


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"block_length": 1}, {"block_length": 65}, {"vocabulary": 3}])
def test_plans_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(RequestError, match="choose"):
        replace(PLAN, **wrong)


@pytest.mark.slow
def test_two_minutes_of_training_on_the_real_target_beat_an_untrained_draft(starter: ResolvedPair, tmp_path: Path) -> None:
    settings = TrainingSettings(seconds=120, held_out=6, max_length=256, optimizer="adamw", evaluate_every=20)
    plan = DraftPlan(layers=2, block_length=8, vocabulary=4096)
    real = Workshop.load(starter.target)
    end = list(TrainingRun(real, tmp_path, settings, Source(invented=48), plan=plan).events())[-1]
    assert isinstance(end, TrainingFinished)
    print(end)
    assert end.best > 1.05 > end.before == 1.0


def test_chats_to_judge_by_are_whole_chats_that_nothing_else_is_learned_from() -> None:
    source = Source(CHATS, invented=30)
    learned, apart = source.split(held_out=2, seed=1)
    assert len(apart.chats) == 2 and len(learned.chats) == len(CHATS) - 2 and (learned.invented, apart.invented) == (30, 0)
    assert not set(learned.questions()) & set(apart.questions())
    assert Source(CHATS[:4]).split(held_out=2, seed=1)[1].chats == []


def test_questions_are_invented_from_the_first_words_of_those_a_user_asked() -> None:
    asked = ["When should I plant beans, and how often should I water them?", "Recipe for soup"]
    openings = {first_words(random.Random(seed), asked) for seed in range(40)}
    assert all(any(question.startswith(words) and question != words for question in asked) for words in openings)
    assert {"Recipe", "When"} <= {words.split()[0] for words in openings} and max(len(words.split()) for words in openings) > 4


@pytest.fixture
def command(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """``train-draft`` with the tiny target already loaded."""
    monkeypatch.setattr(Workshop, "load", classmethod(lambda _cls, _folder: shop))
    quick = ("--steps", "3", "--rows", "1", "--slots", "32", "--max-length", "80", "--layers", "1", "--self-play", "0")

    def call(output: Path, *arguments: str, data: Path | None = None) -> int:
        questions = [{"id": str(number), "prompt": chat[0].content} for number, chat in enumerate(CHATS)]
        data = data or output.parent / "questions.jsonl"
        if not data.exists():
            data.write_text("".join(json.dumps(question) + "\n" for question in questions), encoding="utf-8")
        return main(["train-draft", "--target", str(shop.folder), "--output", str(output), "--data", str(data), *quick, *arguments])

    return call


def test_a_folder_that_holds_a_model_is_not_written_over(
    command: Callable[..., int], shop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file.name: file.read_bytes() for file in shop.folder.iterdir()}
    assert command(shop.folder) == 2
    assert "holds a model: give another folder" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in shop.folder.iterdir() if file.name in before} == before


def test_a_finished_draft_is_written_over_only_when_asked_to(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path / "draft") in (0, 1) and (tmp_path / "draft" / "model.safetensors").exists()
    assert command(tmp_path / "draft") == 2
    assert "holds a finished draft: give another folder, or --restart" in capsys.readouterr().err
    assert command(tmp_path / "draft", "--restart") in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--minutes", "1"), "--steps and --minutes both"), (("--seed", "-1"), "seed is -1"), (("--rate", "0"), "rate is 0")],
)
def test_wrong_options_of_the_command_are_one_line(
    command: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert command(tmp_path / "draft", *arguments) == 2
    assert said in capsys.readouterr().err


def test_a_target_without_a_chat_template_is_told_of_once(
    shop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Path(shutil.copytree(shop.folder, tmp_path / "target"))
    (target / "tokenizer_config.json").unlink()
    data = tmp_path / "one.jsonl"
    data.write_text('{"id": "a", "prompt": "hello"}')
    command = ["train-draft", "--target", str(target), "--output", str(tmp_path / "out"), "--data", str(data), "--steps", "2"]
    assert main(command) == 2, "one question is too little"
    assert capsys.readouterr().err.count("This model has no chat template") == 1


def test_an_unfinished_run_does_not_go_on_with_other_questions(shop: Workshop, tmp_path: Path) -> None:
    for event in TrainingRun(shop, tmp_path, SETTINGS, Source(CHATS), plan=PLAN).events():
        if isinstance(event, TrainingStep) and event.step == 5:
            break
    others = tuple((Message("user", chat[0].content + " Please."),) for chat in CHATS)
    with pytest.raises(RequestError, match="unfinished run with other settings"):
        list(TrainingRun(shop, tmp_path, SETTINGS, Source(others), plan=PLAN).events())
