"""What ``briefcase dev --test`` runs: tests of the app's core and of the bundle's settings, and the line Briefcase looks for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUITES = ("tests/app/core/test_chat.py", "tests/app/core/test_meter.py", "tests/packaging/test_bundle_config.py")

if __name__ == "__main__":
    os.chdir(ROOT)
    code = pytest.main([*SUITES, "-p", "no:cacheprovider"])
    print(f">>>>>>>>>> EXIT {int(code)} <<<<<<<<<<", flush=True)
    sys.exit(code)
