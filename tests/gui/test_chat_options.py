"""Options that belong to a chat: kept with it, asked for in every request, begun from a preset; presets of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.options import ChatOptions
from app.core.words import use_language
from engine import Message
from tests.gui.conftest import load, wait_ready
from tests.scripted import words_of

LOCALE = Path(__file__).parents[2] / "resources" / "locale"


@pytest.fixture
def talk(qtbot, services):
    load(qtbot, services.client)
    return services.conversation


def asked(loader):
    return loader.engines[-1].requests[-1]


def test_options_are_asked_for_and_stay_with_their_chat(qtbot, talk, loader, make_services):
    talk.options.set(ChatOptions(system="Be brief.", temperature=0.5, top_k=7, seed=3, max_tokens=20))
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    first = talk.chat.id
    request = asked(loader)
    assert request.messages == (Message("system", "Be brief."), Message("user", "Why?"))
    assert (request.temperature, request.top_k, request.seed, request.max_tokens) == (0.5, 7, 3, 20)
    kept = talk.messages[-1].statistics
    assert (kept["temperature"], kept["seed"]) == (0.5, 3)
    talk.open(None)
    assert talk.options.current == talk.options.default
    talk.open(first)
    assert talk.options.current.system == "Be brief." and talk.store.chat(first).options["top_k"] == 7


def test_options_changed_in_a_chat_that_is_there_are_kept_with_it(qtbot, talk, loader, tmp_path):
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    first = talk.chat.id
    talk.options.set(ChatOptions(min_p=0.1))
    talk.open(None)
    talk.open(first)
    assert talk.options.current.min_p == 0.1


def test_a_chat_without_options_of_its_own_follows_the_settings(qtbot, talk, services, loader):
    services.settings.update(temperature=0.4, max_tokens=30)
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    services.settings.update(max_tokens=10)
    talk.answer("dflash")
    wait_ready(qtbot, talk.client)
    assert (asked(loader).temperature, asked(loader).max_tokens) == (0.4, 10)


def test_new_chats_begin_with_the_preset_chosen_in_the_settings_and_keep_it(qtbot, talk, services, loader):
    talk.options.set(ChatOptions(temperature=1.5, system="Rhyme."))
    mine = talk.options.save_preset("Poet")
    talk.open(None)
    services.settings.update(preset=mine.id)
    assert talk.options.current.temperature == 1.5
    talk.send("Why?", "dflash")
    wait_ready(qtbot, talk.client)
    services.settings.update(preset="")
    assert talk.options.current.system == "Rhyme." and asked(loader).temperature == 1.5
    talk.open(None)
    assert talk.options.current.temperature == 0.0


def test_presets_can_be_saved_used_renamed_and_deleted(qtbot, talk, services):
    options, seen = talk.options, []
    options.presets_changed.connect(lambda: seen.append([preset.name for preset in options.presets]))
    options.set(ChatOptions(temperature=1.2))
    mine = options.save_preset("Mine")
    options.use_preset("code")
    assert options.current.top_k == 40 and options.matching_preset().id == "code"
    options.use_preset(mine.id)
    assert options.current.temperature == 1.2 and options.matching_preset().id == mine.id
    services.settings.update(preset=mine.id)
    options.rename_preset(mine.id, "Other")
    assert services.settings.current.preset == "user:Other"
    options.save_preset("Third")
    with pytest.raises(ValueError, match="already"):
        options.rename_preset("user:Third", "Other")
    options.delete_preset("user:Other")
    options.delete_preset("precise")
    assert services.settings.current.preset == ""
    names = [preset.name for preset in options.presets]
    assert names == ["Precise", "Balanced", "Creative", "Code", "Third"] and len(seen) >= 4


@pytest.mark.parametrize(("language", "taken"), [("en", "code"), ("de", "Ausgewogen"), ("de", "Balanced")])
def test_no_preset_of_the_user_s_is_called_as_a_built_in_one_in_any_language(talk, language, taken):
    use_language(language, LOCALE)
    options = talk.options
    mine = options.save_preset("Mine")
    for call in (lambda: options.save_preset(taken), lambda: options.rename_preset(mine.id, taken)):
        with pytest.raises(ValueError, match=taken):
            call()
    use_language("en", LOCALE)
    assert [preset.name for preset in options.presets if not preset.built_in] == ["Mine"]
    options.rename_preset(mine.id, "mine")
    assert options.presets[-1].name == "mine", "only the case of its own name"


def test_thoughts_that_the_template_opened_are_kept_with_their_tag_in_both_modes(qtbot, talk, loader):
    loader.script.open_tag, loader.script.text = "<think>", "First this.\n</think>\n\nThen that."
    loader.script.tokens = len(words_of(loader.script.text))
    for mode in ("dflash", "baseline", "compare"):
        talk.send("Why?", mode)
        qtbot.waitUntil(lambda: not talk.client.busy and talk.comparison.running is None, timeout=20_000)
        assert talk.messages[-1].content == "<think>\nFirst this.\n</think>\n\nThen that.", mode
