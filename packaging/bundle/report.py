"""Prints a self-test's report and fails where a check failed or none ran: ``python -m bundle.report FILE``."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """0 where every check passed, 1 where one did not, 2 where there is no report."""
    try:
        report = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        checks = report["checks"]
        for check in checks:
            print(f"{'ok  ' if check['ok'] else 'FAIL'} {check['name']}: {check['detail']} ({check['seconds']:.1f} s)")
    except (IndexError, OSError, ValueError, KeyError, TypeError) as error:
        print(f"No report of a self-test: {error}", file=sys.stderr)
        return 2
    return 0 if report.get("ok") is True and checks and all(check["ok"] for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
