"""Texts: English without a catalogue, values filled in, one form for one and another for many."""

from app.core.words import tr, trn, use_language


def test_without_a_catalogue_the_text_is_the_sources_own(tmp_path):
    use_language("xx", tmp_path)
    assert tr("Delete {name}", name="{a}") == "Delete {a}"
    assert tr("100 % {not filled}") == "100 % {not filled}"


def test_a_count_picks_its_form_and_separates_thousands():
    assert trn("{count} chat", "{count} chats", 1) == "1 chat"
    assert trn("{count} chat", "{count} chats", 1200) == "1,200 chats"
