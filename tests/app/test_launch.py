"""A start from the Finder, by a library that takes the app for Python, or with the system's own arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app import launch

ROOT = Path(__file__).parents[2]


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python without the user's variables and outside every project folder."""
    variables = {"PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"} | environment
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, timeout=120, check=False)


GUARDED = """
import sys
from app.__main__ import main
code = main()
assert not any(name.split(".")[0] in ("PySide6", "mlx") for name in sys.modules), "Qt or MLX was imported"
sys.exit(code)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "from multiprocessing.resource_tracker import main;main(4)"),
        ("-B", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()", "--multiprocessing-fork"),
        ("-m", "pip", "download", "x"),
    ],
)
def test_a_start_as_if_it_were_python_opens_nothing(arguments: tuple[str, ...]) -> None:
    done = run(GUARDED, *arguments)
    assert (done.returncode, done.stderr.strip(), done.stdout) == (2, launch.NO_INTERPRETER, "")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-psn_0_12345"], []),
        (["-NSDocumentRevisionsDebugMode", "YES", "--pair", "starter"], ["--pair", "starter"]),
        (["-AppleLanguages", "(de)", "generate", "--json"], ["generate", "--json"]),
        (["-NSQuitAlwaysKeepsWindows", "--version"], ["--version"]),
        (["generate", "--prompt", "NO"], ["generate", "--prompt", "NO"]),
    ],
)
def test_the_system_s_own_arguments_are_dropped(given: list[str], kept: list[str]) -> None:
    assert launch.own_arguments(given) == kept


# The first bar of a bundle would start the app again: tqdm's default lock runs sys.executable for its resource tracker.
BAR = """
import multiprocessing, multiprocessing.spawn, os, sys
multiprocessing.set_start_method("spawn")
sys.executable = sys.argv[1]
multiprocessing.spawn.set_executable(sys.argv[1])
import multiprocessing.resource_tracker
if sys.argv[2] == "prepared":
    from app import launch
    launch.prepare()
from tqdm.auto import tqdm
for _ in tqdm(range(2), file=open(os.devnull, "w")):
    pass
from huggingface_hub.utils import tqdm as hub
for _ in hub(range(2), file=open(os.devnull, "w")):
    pass
"""


@pytest.mark.parametrize(("how", "starts"), [("prepared", False), ("unprepared", True)])
def test_a_progress_bar_starts_no_second_process(tmp_path: Path, how: str, starts: bool) -> None:
    spy, log = tmp_path / "Slipstream", tmp_path / "started"
    spy.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\n')
    spy.chmod(0o755)
    done = run(f"import warnings; warnings.simplefilter('ignore')\n{BAR}", str(spy), how)
    assert done.returncode == 0 or starts, done.stderr
    assert log.exists() is starts, "without the lock the trap is real; with it nothing is started"


def test_a_command_sets_the_bars_lock_before_its_work() -> None:
    code = "import sys; from app.__main__ import main; main(['models', 'list']); import tqdm; print(type(tqdm.tqdm.get_lock()))"
    assert "RLock" in run(code, HOME=os.environ["HOME"]).stdout.splitlines()[-1]


FINDER = """
import sys
from pathlib import Path
from PySide6.QtCore import QTimer
from app import main
from app.services.engine_client import EngineState
original = main.Program
class Program(original):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.services.client.state_changed.connect(self._watch)
    def _watch(self, state):
        if state is EngineState.READY:
            import tqdm
            print("ready", self.services.client.info.name, type(tqdm.tqdm.get_lock()).__name__, flush=True)
            QTimer.singleShot(0, self.quit)
main.Program = Program
sys.exit(main.run(main.Options("starter", Path(sys.argv[1]))))
"""


def test_the_window_starts_without_a_path_or_variables_in_the_root_folder(starter, tmp_path: Path) -> None:
    assert starter is not None  # set up, where the window looks for it
    home = {"SLIPSTREAM_HOME": os.environ["SLIPSTREAM_HOME"]} if "SLIPSTREAM_HOME" in os.environ else {"HOME": os.environ["HOME"]}
    done = run(FINDER, str(tmp_path / "data"), **home)
    assert done.returncode == 0 and done.stdout.startswith("ready Starter"), done.stderr
    assert done.stdout.strip().endswith("RLock"), "progress bars would take a lock that starts a process"
    assert (tmp_path / "data" / "chats.sqlite3").is_file()
