"""A system that allows few open files, as a shell's `ulimit -n` makes it, can run models all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
IMPORT = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
import engine.loading
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 1024)
try:
    resource.setrlimit(resource.RLIMIT_CORE, (2, 1))
except ValueError:
    print("refused")
"""


def test_models_load_where_few_files_may_be_open_and_no_other_limit_is_bent() -> None:
    run = subprocess.run([sys.executable, "-c", IMPORT], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["True", "refused"], run.stderr
