"""Every text that a user can see is collected for the catalogues and translated whole."""

from __future__ import annotations

import ast
import gettext
import re
import string
from pathlib import Path

import pytest
import words as catalogues

from app.core.words import LANGUAGES

ROOT = Path(__file__).parents[3]
LOCALE = ROOT / "resources" / "locale"
TEMPLATE = catalogues.read(LOCALE / "slipstream.pot")
TRANSLATED = [code for code in LANGUAGES if code != "en"]
TRANSLATING = {"tr", "trn", "mark", "Command"}
SHOWING = {
    "setText", "setPlainText", "setWindowTitle", "setToolTip", "setStatusTip", "setAccessibleName", "setAccessibleDescription",
    "setPlaceholderText", "setTitle", "setLabelText", "setInformativeText", "addItem", "addAction", "addMenu", "addTab", "addRow",
    "addButton", "setItemText", "setHeaderLabels", "setHorizontalHeaderLabels", "setSuffix", "setPrefix", "setSpecialValueText",
    "show_message", "showMessage", "QLabel", "QPushButton", "QToolButton", "QCheckBox", "QRadioButton", "QGroupBox", "QAction",
    "QMenu", "QMessageBox", "QProgressDialog", "ElidedLabel", "Figure", "Failure", "StoreError", "LinkError", "FeedError",
}  # fmt: skip
KEYWORDS = {"text", "placeholderText", "toolTip", "accessibleName", "title", "windowTitle", "suffix", "prefix"}
NOT_SHOWN = {"icon", "getattr", "hasattr", "setObjectName", "invokeMethod", "setProperty", "property", "Literal", "compile"}
LOGGING = {"debug", "info", "warning", "error", "exception", "critical", "log"}
NAMES = {"Slipstream", "DFlash", "GitHub", "Hugging Face", "LM Studio", "GGUF", "LaTeX", "JSON", "Markdown"}


def messages(catalog) -> dict[str | tuple[str, ...], object]:
    return {message.id: message.string for message in catalog if message.id}


def forms(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]


def fields(text: str) -> set[str]:
    """The places in ``text``, each with how it is formatted."""
    return {f"{name}:{spec}" for _literal, name, spec, _conversion in string.Formatter().parse(text) if name is not None}


def test_every_text_is_in_the_template_and_none_is_left_over():
    assert messages(TEMPLATE).keys() == messages(catalogues.extracted()).keys(), "run `make words`"


def test_the_collector_misses_no_call():
    """One inside an f-string is a call to Python and a string to the collector."""
    called = set()
    for path in (ROOT / "app").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node.func) in ("tr", "trn", "mark") and node.args:
                called |= {(path.name, node.args[0].value)} if isinstance(node.args[0], ast.Constant) else set()
    known = {forms(key)[0] for key in messages(TEMPLATE)}
    assert len(called) > 100 and [call for call in sorted(called) if call[1] not in known] == []


@pytest.mark.parametrize("code", TRANSLATED)
def test_every_text_is_translated_with_the_same_places(code):
    translated = messages(catalogues.read(LOCALE / code / "LC_MESSAGES" / "slipstream.po"))
    assert translated.keys() == messages(TEMPLATE).keys(), "run `make words`"
    missing = [key for key, text in translated.items() if not all(forms(text))]
    assert missing == []
    for key, text in translated.items():
        wanted = fields(forms(key)[-1])
        for form in forms(text):
            assert fields(form) <= wanted and fields(forms(text)[-1]) == wanted, key


@pytest.mark.parametrize("code", TRANSLATED)
def test_the_compiled_catalogue_says_what_the_translation_says(code):
    folder = LOCALE / code / "LC_MESSAGES"
    compiled = gettext.translation("slipstream", LOCALE, [code])
    for key, text in messages(catalogues.read(folder / "slipstream.po")).items():
        if isinstance(key, str):
            assert compiled.gettext(key) == text
        else:
            assert [compiled.ngettext(*key, count) for count in (1, 2)] == list(text)  # type: ignore[call-overload]


# What the window shows passes by tr


def shown_literals(path: Path) -> list[str]:
    """Literals of a module that a user would see untranslated, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_shown(node, parents):
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.value!r}")
    return found


def _is_shown(node: ast.Constant, parents: dict[ast.AST, ast.AST]) -> bool:
    text = str(node.value)
    if text.strip() in NAMES or not re.search(r"[A-Za-z]{2}", text):
        return False
    words = text.split()
    sentence = re.search(r"[A-Za-z]{2,}[,:.]? [A-Za-z]{2,}", text) is not None and (text[0].isupper() or len(words) > 2)
    step, parent = node, parents.get(node)
    while parent is not None:
        if isinstance(parent, ast.Call):
            name = _name(parent.func)
            if name in TRANSLATING or name in NOT_SHOWN or name in LOGGING or step is parent.func:
                return False
            if name in SHOWING:
                return True
        if isinstance(parent, ast.keyword) and not sentence:
            called = parents[parent]
            return parent.arg in KEYWORDS and isinstance(called, ast.Call) and _name(called.func) not in TRANSLATING
        if isinstance(parent, ast.Subscript | ast.Compare) or (isinstance(parent, ast.Dict) and step in parent.keys):
            return False
        if isinstance(parent, ast.Assert | ast.Raise) or (isinstance(parent, ast.Expr) and step is parent.value):
            return isinstance(parent, ast.Raise) and sentence
        if isinstance(parent, ast.AnnAssign) and step is parent.annotation:
            return False
        step, parent = parent, parents.get(parent)
    return sentence


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def modules() -> list[Path]:
    """Everything of the window that can say something."""
    rooms = [*(ROOT / "app/ui").rglob("*.py"), *(ROOT / "app/services").rglob("*.py"), ROOT / "app/commands.py"]
    return sorted(rooms)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_no_text_bypasses_the_catalogue(path):
    assert shown_literals(path) == []


@pytest.mark.parametrize(
    "line",
    [
        'label.setText("Ready")',
        'label.setText(f"{count} chats")',
        'self.banner.show_message("It failed.", run=act)',
        'text = "The disk is full: free some space."',
        'box = QLabel("Size" if small else name)',
        'QLineEdit(placeholderText="Search")',
        'raise StoreError(f"{path} cannot be read")',
    ],
)
def test_the_walk_finds_what_bypasses_the_catalogue(tmp_path, monkeypatch, line):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "part.py"
    path.write_text(f'"""A docstring with words."""\nlog.info("not for users")\n{line}\n')
    assert len(shown_literals(path)) == 1
    path.write_text('label.setText(tr("Ready"))\ntext = tr("{count} chats", count=3)\nlabel.setText("DFlash")\nkind["two words"]\n')
    assert shown_literals(path) == []
