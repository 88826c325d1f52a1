"""Nothing is lost: messages are kept before they are shown, partial answers while they stream, failures marked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from app.core.chat import Attachment
from app.services.engine_client import EngineState
from app.services.wiring import CHATS
from app.store import ChatStore
from engine import compare_tokens
from tests.gui.conftest import load, wait_ready


@pytest.fixture
def talk(qtbot, services):
    load(qtbot, services.client)
    return services.conversation


def stored(tmp_path, chat_id: int):
    """The messages as another process would find them."""
    other = ChatStore(tmp_path / CHATS)
    try:
        return other.messages(chat_id)
    finally:
        other.close()


READ = """
import json, sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
columns = "id, parent_id, role, content, state, attachments"
print(json.dumps(db.execute(f"SELECT {columns} FROM messages ORDER BY id DESC LIMIT 1").fetchone()))
"""


def read_by_another_process(tmp_path) -> list:
    """The newest message as a program that knows nothing of this one finds it on the disk."""
    done = subprocess.run([sys.executable, "-c", READ, tmp_path / CHATS], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_every_message_is_on_disk_before_it_is_shown(qtbot, talk, tmp_path):
    on_disk = []
    talk.message_added.connect(lambda message: on_disk.append((message, read_by_another_process(tmp_path))))
    talk.send("Why is the sky blue?", "dflash", [Attachment("a.py", "x = 1")])
    wait_ready(qtbot, talk.client)
    talk.edit(talk.messages[0].id, "And at night?", "dflash")
    wait_ready(qtbot, talk.client)
    assert [shown.role for shown, _kept in on_disk] == ["user", "assistant"] * 2
    for shown, kept in on_disk:
        assert kept[:5] == [shown.id, shown.parent_id, shown.role, shown.content, shown.state]
        assert [file["text"] for file in json.loads(kept[5] or "[]")] == [file.text for file in shown.attachments]


def test_an_answer_and_its_figures_are_kept(qtbot, talk, tmp_path):
    ended = []
    talk.answer_ended.connect(ended.append)
    talk.send("Why is the sky blue?", "dflash")
    wait_ready(qtbot, talk.client)
    kept = stored(tmp_path, talk.chat.id)[-1]
    assert kept.state == "done" and kept.content == ended[0].content
    assert kept.statistics["mode"] == "dflash" and kept.statistics["completion_tokens"] == 40


def test_streaming_text_is_saved_while_it_streams(qtbot, talk, tmp_path, services, loader):
    script_rate(loader, 40.0)
    talk.send("Tell me more", "dflash")
    qtbot.waitUntil(lambda: bool(talk.active and len(talk.active.text) > 20), timeout=20_000)
    seen = len(talk.active.text)
    qtbot.waitUntil(lambda: len(stored(tmp_path, talk.chat.id)[-1].content) >= seen, timeout=900)
    assert stored(tmp_path, talk.chat.id)[-1].state == "streaming"
    talk.stop()
    wait_ready(qtbot, talk.client)


def script_rate(loader, rate: float, tokens: int = 400) -> None:
    """Slows the engine that is loaded down."""
    loader.script.rate, loader.script.tokens = rate, tokens


def test_stop_keeps_the_text_and_says_stopped(qtbot, talk, tmp_path, services, loader):
    script_rate(loader, 50.0)
    talk.send("Tell me more", "dflash")
    qtbot.waitUntil(lambda: bool(talk.active and talk.active.text), timeout=20_000)
    shown = talk.active.text
    talk.stop()
    wait_ready(qtbot, talk.client)
    kept = stored(tmp_path, talk.chat.id)[-1]
    assert kept.state == "stopped" and kept.content.startswith(shown)


def test_a_crash_keeps_the_text_and_says_failed(qtbot, talk, tmp_path, loader):
    loader.script.crash_at = 12
    talk.send("Tell me more", "dflash")
    qtbot.waitUntil(lambda: talk.client.state is EngineState.LOST, timeout=20_000)
    kept = stored(tmp_path, talk.chat.id)[-1]
    assert kept.state == "failed" and kept.content.startswith("A rainbow forms")


def test_asking_again_answers_the_same_question_and_keeps_the_first_answer(qtbot, talk, loader):
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    first = talk.messages[-1]
    talk.answer("baseline")
    wait_ready(qtbot, talk.client)
    assert [message.role for message in talk.messages] == ["user", "assistant"]
    assert talk.version_of(talk.messages[-1].id) == (2, 2) and talk.tree[first.id] == first
    asked = loader.engines[-1].requests[-1]
    assert [turn.role for turn in asked.messages] == ["user"] and asked.mode == "baseline"
    talk.send("And then?", "dflash")
    wait_ready(qtbot, talk.client)
    assert [turn.role for turn in loader.engines[-1].requests[-1].messages] == ["user", "assistant", "user"]


def test_an_empty_prompt_is_refused_in_words_and_keeps_nothing(qtbot, talk, services):
    failures = []
    talk.failed.connect(failures.append)
    assert not talk.send(" \n\t", "dflash")
    assert "empty" in failures[0].message and services.store.chats() == []


def test_lone_surrogates_and_control_characters_are_sent_readable(qtbot, talk, tmp_path, loader):
    talk.send("a\ud800b\x00c\r\nd", "dflash")
    wait_ready(qtbot, talk.client)
    assert stored(tmp_path, talk.chat.id)[0].content == "a\ufffdbc\nd"
    assert loader.engines[-1].requests[-1].messages[-1].content == "a\ufffdbc\nd"


def test_a_prompt_longer_than_the_context_fails_in_words_and_stays_in_the_chat(qtbot, talk, tmp_path, loader):
    loader.script.context_length = 20
    load(qtbot, talk.client)
    failures = []
    talk.failed.connect(failures.append)
    talk.send("word " * 100, "dflash")
    wait_ready(qtbot, talk.client)
    assert failures[0].is_overflow and "context holds 20" in failures[0].message
    assert stored(tmp_path, talk.chat.id)[0].content == "word " * 100


def test_leaving_a_chat_while_it_answers_loses_nothing(qtbot, talk, services, loader):
    script_rate(loader, 100.0, tokens=60)
    talk.send("Tell me more", "dflash")
    first = talk.chat.id
    qtbot.waitUntil(lambda: bool(talk.active and talk.active.text), timeout=20_000)
    talk.open(None)
    grown = []
    talk.answer_grew.connect(lambda _id, text: grown.append(text))
    talk.open(first)
    before = talk.messages[-1].content
    assert before
    wait_ready(qtbot, talk.client)
    assert talk.messages[-1].state == "done" and talk.messages[-1].content == before + "".join(grown)


def test_deleting_a_chat_stops_its_answer_and_stays_deleted(qtbot, talk, services, loader):
    script_rate(loader, 20.0)
    talk.send("Tell me more", "dflash")
    qtbot.waitUntil(lambda: talk.client.state is EngineState.DECODING, timeout=20_000)
    services.shelf.delete(talk.chat.id)
    wait_ready(qtbot, talk.client)
    assert services.store.chats() == [] and talk.chat is None and talk.active is None


def test_a_new_request_ends_the_one_before_as_stopped(qtbot, talk, tmp_path, services, loader):
    script_rate(loader, 30.0)
    talk.send("First", "dflash")
    qtbot.waitUntil(lambda: bool(talk.active and talk.active.text), timeout=20_000)
    services.client.load("scripted")
    wait_ready(qtbot, talk.client)
    assert stored(tmp_path, talk.chat.id)[-1].state == "stopped" and stored(tmp_path, talk.chat.id)[-1].content


def test_an_answer_found_streaming_at_the_next_start_is_marked(qtbot, make_services, tmp_path):
    first = make_services()
    chat = first.store.create_chat("Cut")
    first.store.add_message(chat.id, "assistant", "Half an ans", "streaming")
    first.shutdown(20.0)
    second = make_services()
    assert second.recovered == 1
    assert second.store.messages(chat.id)[0].state == "interrupted"


def test_settings_survive_a_restart_and_damage(qtbot, make_services):
    first = make_services()
    first.settings.update(mode="compare", temperature=0.7, text_size=130)
    first.shutdown(20.0)
    second = make_services()
    assert (second.settings.current.mode, second.settings.current.temperature) == ("compare", 0.7)
    second.store.set_setting("settings", {"mode": 5, "temperature": "warm", "unknown": 1})
    second.shutdown(20.0)
    assert make_services().settings.current.mode == "dflash"


def test_side_by_side_runs_both_modes_on_the_same_request_and_keeps_the_answer(qtbot, talk, tmp_path, loader):
    talk.send("Why?", "compare")
    qtbot.waitUntil(lambda: talk.comparison.running is None, timeout=20_000)
    plain, draft = loader.engines[-1].requests
    assert (plain.mode, draft.mode) == ("baseline", "dflash")
    assert (plain.messages, plain.max_tokens, plain.temperature) == (
        draft.messages,
        draft.max_tokens,
        draft.temperature,
    )
    comparison = talk.comparison.comparison
    baseline, dflash = comparison.left.finished, comparison.right.finished
    assert comparison.verdict == compare_tokens(baseline.token_ids, dflash.token_ids) and comparison.verdict.identical
    assert comparison.verdict_line().endswith("identical, 40 tokens")
    kept = stored(tmp_path, talk.chat.id)
    assert [message.state for message in kept] == ["sent", "done"] and kept[-1].content == dflash.text


@pytest.mark.parametrize("side", ["left", "right"])
def test_stop_works_in_either_arm_of_a_comparison(qtbot, talk, tmp_path, services, side, loader):
    script_rate(loader, 0.0, tokens=10)
    if side == "left":
        script_rate(loader, 20.0)
    talk.comparison.arm_started.connect(lambda name: name == "right" and script_rate(loader, 20.0))
    talk.send("Why?", "compare")
    qtbot.waitUntil(lambda: talk.comparison.running == side and bool(talk.comparison.comparison.side(side).text), timeout=20_000)
    talk.stop()
    qtbot.waitUntil(lambda: talk.comparison.running is None, timeout=20_000)
    wait_ready(qtbot, talk.client)
    assert "not comparable" in talk.comparison.comparison.verdict_line()
    assert stored(tmp_path, talk.chat.id)[-1].content


def test_the_meter_agrees_with_the_engine_at_the_end(qtbot, talk, services):
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    figures, snapshot = talk.messages[-1].statistics, services.meter.snapshot()
    assert snapshot.tok_s == pytest.approx(figures["decode_tok_s"])
    assert snapshot.tokens_per_cycle == pytest.approx(figures["tokens_per_cycle"])
    assert snapshot.acceptance_rate == pytest.approx(figures["acceptance_rate"])
    assert snapshot.ttft_s == pytest.approx(figures["ttft_s"]) and snapshot.phase == "done"


def fill_disk(services) -> None:
    """Leaves the chat file no room to grow, as a full disk does."""
    pages = services.store._db.execute("PRAGMA page_count").fetchone()[0]
    services.store._db.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_while_streaming_is_told_once_and_the_answer_goes_on(qtbot, talk, services, loader):
    script_rate(loader, 400.0, tokens=1_500)
    failures, grown = [], []
    talk.failed.connect(failures.append)
    talk.send("Tell me more", "dflash")
    qtbot.waitUntil(lambda: bool(talk.active and talk.active.text), timeout=20_000)
    fill_disk(services)
    qtbot.waitUntil(lambda: bool(failures), timeout=20_000)
    talk.answer_grew.connect(lambda _id, text: grown.append(text))
    wait_ready(qtbot, talk.client)
    assert "full" in failures[0].message.lower() and len(failures) <= 2 and not failures[0].is_bug
    assert grown or talk.messages[-1].state == "done"
    assert len(talk.messages[-1].content) > 5_000


def test_a_full_disk_refuses_a_message_and_leaves_it_with_the_user(qtbot, make_window, services, loader):
    window = make_window(services)
    load(qtbot, services.client)
    fill_disk(services)
    text = "word " * 3_000
    window.composer.set_text(text)
    window.do.send()
    assert window.composer.text() == text and "full" in window.banner.text.lower()
    assert services.client.state is EngineState.READY and not services.client.busy
