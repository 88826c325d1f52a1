"""janhq/jan#908, ogx-ai/ogx#4429: copy took the whole message or lost the indentation.

lmstudio-ai/lmstudio-bug-tracker#858: the copy button was only at the top of a long block, out of sight.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.ui.code_block import CodeBlock
from tests.gui.conftest import wait_ready
from tests.scripted import words_of

CODE = "class A:\n\tdef f(self):\n        return {\n            'x':  1,\n        }\n" + "\n".join(f"    # {n}" for n in range(40))


def test_copy_takes_the_code_alone_with_its_indentation_from_either_end(qtbot, window, loader):
    loader.script.text = f"Here it is:\n\n```python\n{CODE}\n```\n\nThat was it."
    loader.script.tokens = len(words_of(loader.script.text))
    window.composer.set_text("Code please")
    window.do.send()
    wait_ready(qtbot, window.services.client)
    (block,) = (widget for widget in window.transcript.answers[-1].body.widgets if isinstance(widget, CodeBlock))
    bar, view = window.transcript.verticalScrollBar(), window.transcript.viewport()
    qtbot.waitUntil(lambda: bar.maximum() > 200, timeout=20_000)
    for button, place in ((block._copy, bar.minimum()), (block._copy_below, bar.maximum())):
        bar.setValue(place)
        QGuiApplication.clipboard().clear()
        qtbot.waitUntil(lambda button=button: not button.visibleRegion().isEmpty(), timeout=20_000)
        assert view.rect().contains(button.mapTo(view, button.rect().center()))
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        assert QGuiApplication.clipboard().text() == CODE
    qtbot.waitUntil(lambda: block._copy.text() == "Copy" and not block.highlighter.working, timeout=20_000)
