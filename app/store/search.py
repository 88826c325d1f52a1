"""Full-text search of messages: an FTS5 trigram index kept by triggers, a plain scan where FTS5 is missing."""

from __future__ import annotations

import re
import sqlite3
import unicodedata

# A pasted file of megabytes would take a second to index: of a message longer than this many characters only the first are, and
# it is read through when something is searched.
INDEXED_CHARS = 100_000
# As in the index on these messages, which the version 4 of the tables brought.
LONG = "length(content) + coalesce(length(attachments), 0) > 100000"


# How JSON (as ``rows.attachments_json`` writes it) is read as plain text in SQL: FTS5 lets no json_each into its content.
# Escapes are set aside first, so that a quote is JSON's own; char(1) and char(2) are in no text that is kept. What a list at
# the end says of documents goes with everything behind the last brace.
_BEHIND_THE_LAST = "'abcdefghijklmnopqrstuvwxyz0123456789\",[] '"
_PLAIN = (
    (r"'\\'", "char(1)"),
    (r"""'\"'""", "char(2)"),
    ("""'[{"name": "'""", "''"),
    ("""'", "text": "'""", "char(10)"),
    ("""'"}, {"name": "'""", "char(10)"),
    ("""'"}'""", "''"),
    (r"'\n'", "char(10)"),
    (r"'\t'", "char(9)"),
    ("char(2)", """'"'"""),
    ("char(1)", r"'\'"),
)


def message_text(table: str) -> str:
    """An SQL expression for all text of the message ``table``: its content, then its attachments' names and texts."""
    files = f"rtrim({table}.attachments, {_BEHIND_THE_LAST})"
    for old, new in _PLAIN:
        files = f"replace({files}, {old}, {new})"
    return f"{table}.content || coalesce(char(10) || {files}, '')"


def _indexed_text(table: str) -> str:
    return f"substr({message_text(table)}, 1, {INDEXED_CHARS})"


# Answers enter the index when they are finished: indexing each step of a stream would cost more than the stream.
_VIEW = f"CREATE VIEW searchable AS SELECT id, {_indexed_text('messages')} AS content FROM messages WHERE state <> 'streaming'"
_INDEX = """CREATE VIRTUAL TABLE IF NOT EXISTS message_index
    USING fts5(content, content='searchable', content_rowid='id', tokenize='trigram')"""
_ADD = f"INSERT INTO message_index(rowid, content) VALUES (new.id, {_indexed_text('new')})"
_REMOVE = f"INSERT INTO message_index(message_index, rowid, content) VALUES ('delete', old.id, {_indexed_text('old')})"
_TRIGGERS = {
    name: f"CREATE TRIGGER {name} {action}; END"
    for name, action in (
        ("index_new", f"AFTER INSERT ON messages WHEN new.state <> 'streaming' BEGIN {_ADD}"),
        (
            "index_before_change",
            f"BEFORE UPDATE OF content, state, attachments ON messages WHEN old.state <> 'streaming' BEGIN {_REMOVE}",
        ),
        (
            "index_after_change",
            f"AFTER UPDATE OF content, state, attachments ON messages WHEN new.state <> 'streaming' BEGIN {_ADD}",
        ),
        ("index_gone", f"BEFORE DELETE ON messages WHEN old.state <> 'streaming' BEGIN {_REMOVE}"),
    )
}
LEAD = 16  # characters before what was found, few enough for it to be seen in a narrow list
# A trigram needs three characters; shorter words are looked for one message at a time.
_TRIGRAM = 3


def has_fts5(db: sqlite3.Connection) -> bool:
    """Whether this SQLite can keep the index."""
    return any(row[0] == "fts5" for row in db.execute("SELECT name FROM pragma_module_list"))


def index_is_prepared(db: sqlite3.Connection) -> bool:
    """Whether ``prepare_index`` has nothing to do."""
    kept = {name: sql for name, sql in _kept(db).items() if name in _TRIGGERS}
    return kept == (_TRIGGERS if has_fts5(db) else {})


def prepare_index(db: sqlite3.Connection) -> None:
    """Makes the index, or makes it anew as this version keeps it, inside the open transaction.

    Without FTS5 the triggers are dropped, since every write would fail on them; a later run with FTS5 builds the index
    anew.
    """
    for name in _TRIGGERS:
        db.execute(f"DROP TRIGGER IF EXISTS {name}")
    if not has_fts5(db):
        return
    db.execute("DROP VIEW IF EXISTS searchable")
    db.execute(_INDEX)
    for statement in (_VIEW, *_TRIGGERS.values()):
        db.execute(statement)
    db.execute("INSERT INTO message_index(message_index) VALUES ('rebuild')")


def matching_messages(words: list[str], indexed: bool) -> tuple[str, list[str]]:
    """An SQL condition on ``messages`` that holds where the content has every word, and its parameters."""
    of_index = [word for word in words if min(map(len, forms(word))) >= _TRIGRAM] if indexed else []
    everywhere, all_folded = containing(message_text("messages"), words)
    if not of_index:
        return everywhere, all_folded
    phrases = [[f'"{form.replace(chr(34), chr(34) * 2)}"' for form in forms(word)] for word in of_index]
    matched = " AND ".join(f"({' OR '.join(each)})" for each in phrases)
    conditions, parameters = ["messages.id IN (SELECT rowid FROM message_index WHERE message_index MATCH ?)"], [matched]
    short = [word for word in words if word not in of_index]
    if short:
        condition, parameters_of_short = containing(message_text("messages"), short)
        conditions, parameters = [*conditions, condition], [*parameters, *parameters_of_short]
    in_long = f"messages.id IN (SELECT id FROM messages WHERE {LONG} AND {everywhere})"
    return f"(({' AND '.join(conditions)}) OR {in_long})", parameters + all_folded


def folded(text: str) -> str:
    """``text`` as it is compared: whatever its case, and with accents as part of their letters."""
    return unicodedata.normalize("NFC", text.casefold())


def forms(word: str) -> list[str]:
    """A word with its accents as part of the letters and as marks after them, as a Mac writes them in names of files."""
    return list(dict.fromkeys((word, *(unicodedata.normalize(form, word) for form in ("NFC", "NFD")))))


def containing(column: str, words: list[str]) -> tuple[str, list[str]]:
    """An SQL condition that holds where ``column`` has every word, whatever the case, and its parameters.

    Needs the function ``folded``; LIKE would ignore case in English letters only.
    """
    return " AND ".join([f"instr(folded({column}), ?)"] * len(words)), [folded(word) for word in words]


def excerpt(content: str, words: list[str], width: int = 80) -> str:
    """About ``width`` characters of ``content`` around the first word that is found in it, on one line."""
    lower = content.lower()
    found = (lower.find(form.lower()) for word in words for form in forms(word))
    at = min((place for place in found if place >= 0), default=0)
    start = max(0, at - LEAD)
    space = re.search(r"\s", content[start:at]) if start else None  # not in the middle of a word, where there are words
    start += space.end() if space else 0
    piece = content[start : start + width]
    return ("…" if start else "") + " ".join(piece.split()) + ("…" if start + width < len(content) else "")


def _kept(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
