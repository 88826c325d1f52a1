"""Commands run in the process of the tests, on a tiny random pair."""

from __future__ import annotations

import pytest

from engine import cli, draft_check
from engine.models import ResolvedPair
from tests.engine.bench.pairs import write_pair


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> str:
    """TARGET+DRAFT of a tiny random pair, loaded anew by each command as a user's would be."""
    return write_pair(tmp_path_factory.mktemp("pair"), starter)


@pytest.fixture(autouse=True)
def no_word_on_the_random_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it cannot guess is told in ``test_draft_check``; here stderr holds what the commands say themselves."""
    monkeypatch.setattr(draft_check, "IMPLAUSIBLE", 0.0)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Runs a command in this process: its exit code, stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(arguments)
        except SystemExit as leaving:  # argparse's way out
            assert isinstance(leaving.code, int)
            code = leaving.code
        return code, *capsys.readouterr()

    return command
