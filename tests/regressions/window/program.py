"""The program as its own process, asked a slow question; for what ends it from outside.

    python -m tests.regressions.window.program FOLDER WAY

Says "answering" once text has arrived; then, by WAY: "wait" for a signal, "command", or "event", which is how the
Dock's Quit and logging out of macOS arrive.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QTimer

from app import main
from app.services.engine_client import EngineState
from tests.scripted import Script, ScriptedLoader


def run(folder: Path, way: str) -> int:
    """Exit code of the program."""
    application = main.make_application(["slipstream"])
    program = main.Program(application, folder, main.Options(pair="scripted"), ScriptedLoader(Script(rate=40.0, tokens=4000)))
    program.ended.connect(lambda: application.exit(0))
    bridge = main.SignalBridge(program)
    program.window.show()
    said = False

    def step() -> None:
        nonlocal said
        answer = program.services.conversation.active
        if program.services.client.state is EngineState.READY and not program.services.conversation.messages:
            program.window.composer.set_text("Hello")
            program.window.do.send()
        elif answer is not None and len(answer.text) > 100 and not said:
            said = True
            program.services.conversation.save_partial()
            print("answering", flush=True)
            if way == "command":
                program.window.actions_by_id["quit"].trigger()
            elif way == "event":
                QCoreApplication.sendEvent(application, QEvent(QEvent.Type.Quit))

    timer = QTimer(interval=20)
    timer.timeout.connect(step)
    timer.start()
    try:
        return application.exec()
    finally:
        bridge.close()


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2]))
