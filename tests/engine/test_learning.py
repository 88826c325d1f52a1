"""Learning from chats with a loaded pair: what is taken into use, what is not, what a pause, an undo and damage leave."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine import Cancelled, Finished, GenerationRequest, LoadOptions, Mode, ModelError, RequestError, load
from engine.engine import Engine
from engine.learned import forget_all, learned_folder
from engine.training.run import Source
from engine.training.settings import DataProgress, TrainingEvent, TrainingFinished, TrainingSettings, TrainingStep
from tests.engine.learning_pair import CHATS, QUESTIONS, TEACHES, write_spoiled_pair

LEARNED = LoadOptions(learned=True, prefix_disk_bytes=0)
TEACHES_NOTHING = replace(TEACHES, steps=1, rate=1e-9)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_spoiled_pair(tmp_path_factory.mktemp("learning"))


def learn(engine: Engine, settings: TrainingSettings = TEACHES, chats=CHATS) -> list[TrainingEvent]:
    return list(engine.learn(chats, settings=settings))


def answer(engine: Engine, mode: Mode = "dflash", question: str = QUESTIONS[0]) -> Finished:
    *_, last = engine.generate(GenerationRequest.of(question, mode=mode, max_tokens=40, block_length=8))
    assert isinstance(last, Finished)
    return last


def accepted(engine: Engine) -> int:
    return answer(engine).statistics.accepted


def pace(engine: Engine) -> float:
    """Tokens per cycle of real answers to the questions that were kept apart."""
    apart = Source(CHATS).split(TEACHES.held_out, TEACHES.seed)[1].questions()
    found = [answer(engine, question=question).statistics for question in apart]
    return sum(statistics.completion_tokens - 1 for statistics in found) / sum(statistics.cycles for statistics in found)


@pytest.fixture(scope="module")
def first(pair: str, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """One run with a fresh data folder: an answer and the pace before, the run's end, how the engine drafted right after it, and
    the folder it left."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTREAM_HOME", str(home))
        engine = load(pair, options=LEARNED)
        before, pace_before = answer(engine), pace(engine)
        end = learn(engine)[-1]
        untouched = accepted(engine)
        engine.use_learned(True).close()  # so that the costs of both drafts are measured once for all tests
    return {"home": home, "before": before, "pace": pace_before, "end": end, "untouched": untouched}


@pytest.fixture
def home(first: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which something was learned."""
    shutil.copytree(first["home"], tmp_path / "home")
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def fresh(home: Path) -> Path:
    """A data folder in which nothing was learned yet."""
    shutil.rmtree(learned_folder())
    return home


@pytest.fixture
def engine(pair: str, home: Path) -> Iterator[Engine]:
    loaded = load(pair, options=LEARNED)
    yield loaded
    loaded.close()


def kept_files() -> list[str]:
    return sorted(file.name for file in learned_folder().rglob("*") if file.is_file())


def test_a_better_draft_is_found_while_the_one_in_use_stays_as_it_is(first: dict) -> None:
    end = first["end"]
    assert isinstance(end, TrainingFinished) and end.reason == "done" and end.better and end.best > 1.02 * end.before
    assert first["untouched"] == first["before"].statistics.accepted


def test_the_better_draft_speeds_answers_up_and_the_text_stays_the_targets_own(first: dict, engine: Engine) -> None:
    after, before = answer(engine), first["before"]
    assert engine.info.learned is not None and engine.info.learned.in_use
    assert (engine.info.learned.before, engine.info.learned.after) == (first["end"].before, first["end"].best)
    assert pace(engine) > first["pace"]
    assert after.token_ids == before.token_ids == answer(engine, "baseline").token_ids


def test_only_the_draft_and_its_figures_are_kept_and_only_their_owner_can_read_them(home: Path) -> None:
    assert kept_files() == ["config.json", "learned.json", "model.safetensors"]
    assert learned_folder().stat().st_mode & 0o077 == 0


def test_the_original_draft_comes_back_without_loading_the_target_and_the_learned_one_after_it(
    first: dict, pair: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = load(pair, options=LEARNED)
    learned, original = accepted(engine), first["before"].statistics.accepted
    monkeypatch.setattr("engine.loading.load_target", None)
    engine = engine.use_learned(False)
    assert learned != original == accepted(engine)
    assert engine.info.learned is not None and not engine.info.learned.in_use
    engine = engine.use_learned(True)
    assert accepted(engine) == learned
    engine.use_learned(False).close()
    monkeypatch.undo()
    monkeypatch.setenv("SLIPSTREAM_HOME", str(home))
    again = load(pair, options=LEARNED)
    assert accepted(again) == original  # the choice outlives the program
    again.close()


def test_a_change_of_draft_that_fails_leaves_the_engine_as_it_was(
    first: dict, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answer(engine)

    def unreadable(*_: object) -> None:
        raise ModelError("scripted")

    with monkeypatch.context() as patched, pytest.raises(ModelError, match="scripted"):
        patched.setattr("engine.loading.load_draft", unreadable)
        engine.use_learned(False)
    after = answer(engine)
    assert (after.token_ids, after.statistics.accepted) == (before.token_ids, before.statistics.accepted)
    assert after.statistics.cache == before.statistics.cache != "turned off"
    assert '"in_use": true' in next(learned_folder().glob("*/learned.json")).read_text(), "the next start goes on with it too"


def test_what_was_learned_is_only_used_where_that_was_asked_for(first: dict, pair: str, home: Path) -> None:
    plain = load(pair)
    assert plain.info.learned is None and accepted(plain) == first["before"].statistics.accepted
    plain.close()


def test_a_draft_that_is_not_better_is_not_taken_and_leaves_nothing_behind(pair: str, fresh: Path) -> None:
    engine = load(pair, options=LEARNED)
    end = learn(engine, TEACHES_NOTHING)[-1]
    assert isinstance(end, TrainingFinished) and end.reason == "done" and not end.better
    assert kept_files() == []
    engine.close()


def test_learning_again_goes_on_from_the_learned_draft(first: dict, engine: Engine) -> None:
    end = learn(engine, TEACHES_NOTHING)[-1]
    assert isinstance(end, TrainingFinished) and end.before == pytest.approx(first["end"].best, abs=0.05)
    assert kept_files() == ["config.json", "learned.json", "model.safetensors"]


def test_a_pause_ends_the_step_at_once_and_learning_goes_on_at_the_step_it_was_in(pair: str, fresh: Path) -> None:
    engine = load(pair, options=LEARNED)
    cancel, steps = threading.Event(), []
    with pytest.raises(Cancelled):
        for event in engine.learn(CHATS, cancel, TEACHES):
            if isinstance(event, TrainingStep):
                steps.append(event.step)
                if event.step == 3:
                    cancel.set()
    assert steps == [1, 2, 3]
    assert len(answer(engine).token_ids) > 1  # a request in between
    later = [event.step for event in learn(engine) if isinstance(event, TrainingStep)]
    assert later == list(range(4, TEACHES.steps + 1))
    engine.close()


def test_answers_written_before_a_pause_are_not_written_again(pair: str, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = load(pair, options=LEARNED)
    cancel, totals = threading.Event(), []
    with pytest.raises(Cancelled):
        for event in engine.learn(CHATS, cancel, TEACHES_NOTHING):
            if isinstance(event, DataProgress) and event.total > 4 and event.done == 5:  # past the four to judge by
                cancel.set()
    (answers,) = learned_folder().rglob("run-answers.jsonl")
    answers.write_text(answers.read_text("utf-8")[:-9], "utf-8")  # as a kill while the last one was written
    for event in engine.learn(CHATS, settings=TEACHES_NOTHING):
        if isinstance(event, DataProgress):
            totals.append(event.total)
    assert totals and set(totals) == {len(CHATS) - 4 - 5 + 1}
    assert not list(learned_folder().rglob("run-answers.jsonl"))
    engine.close()


def test_a_run_whose_chat_was_deleted_begins_anew_and_its_texts_are_gone(pair: str, fresh: Path) -> None:
    engine = load(pair, options=LEARNED)
    cancel = threading.Event()
    with pytest.raises(Cancelled):
        for event in engine.learn(CHATS, cancel, TEACHES):
            if isinstance(event, TrainingStep):
                cancel.set()
    (begun,) = learned_folder().glob("*/run-*")
    assert (begun / "run-texts.npz").exists()
    fewer = engine.learn(CHATS[1:], settings=TEACHES)
    next(fewer)
    assert not begun.exists()
    fewer.close()
    engine.close()


def test_forgetting_deletes_every_file_and_the_original_draft_goes_on(first: dict, home: Path, pair: str) -> None:
    engine = load(pair, options=LEARNED)
    forget_all()
    assert not learned_folder().exists()
    original = engine.use_learned(False)
    assert original.info.learned is None and accepted(original) == first["before"].statistics.accepted
    original.close()


@pytest.mark.parametrize("damaged", ["model.safetensors", "config.json"])
def test_a_damaged_learned_draft_is_not_used_and_the_pair_says_so(first: dict, home: Path, pair: str, damaged: str) -> None:
    (file,) = learned_folder().glob(f"*/draft-*/{damaged}")
    file.write_bytes(b"\0" * 100)
    again = load(pair, options=LEARNED)
    assert again.info.learned is None and accepted(again) == first["before"].statistics.accepted
    assert any("The draft learned from your chats cannot be used" in notice for notice in again.info.notices)
    again.close()


def test_a_damaged_note_counts_as_nothing_learned(home: Path, pair: str) -> None:
    (note,) = learned_folder().glob("*/learned.json")
    note.write_text(json.dumps({"folder": "../../elsewhere", "before": "?"}))
    again = load(pair, options=LEARNED)
    assert again.info.learned is None
    again.close()


def test_a_pair_without_a_draft_refuses_to_learn(pair: str, fresh: Path) -> None:
    plain = load(pair.split("+")[0], options=LEARNED)
    with pytest.raises(RequestError, match=r"no draft to go on from"):
        learn(plain)
    plain.close()
