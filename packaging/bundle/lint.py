"""Finds what would keep Slipstream.app from opening on a Mac, on any system: ``python -m bundle.lint APP [--without-runtime]``.

``--without-runtime``: the bundle was assembled without Briefcase, so Python's runtime and the launcher are not expected.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bundle import lint_code, lint_files
from bundle.lint_files import Problem
from bundle.project import Bundle, read

Rule = Callable[[Path, Bundle], Iterator[Problem]]
RULES: tuple[Rule, ...] = (
    lint_files.info_plist,
    lint_files.icons,
    lint_files.packages,
    lint_files.starter,
    lint_files.licences,
    lint_files.byte_code,
    lint_files.strays,
    lint_files.links,
    lint_files.sizes,
    lint_code.machos,
    lint_code.metallib,
)


def lint(app: Path, bundle: Bundle, with_runtime: bool = True) -> list[Problem]:
    """Every problem in ``app``, in the order of the rules."""
    rules = (*RULES, lint_files.runtime) if with_runtime else RULES
    return [problem for rule in rules for problem in rule(app, bundle)]


def main(arguments: list[str]) -> int:
    """Prints the problems and returns 1 where there is one."""
    parser = argparse.ArgumentParser(prog="bundle.lint", description="Check a macOS bundle.")
    parser.add_argument("app", type=Path)
    parser.add_argument("--without-runtime", action="store_true", help="Python's runtime and the launcher are not expected")
    options = parser.parse_args(arguments)
    problems = lint(options.app, read(), not options.without_runtime)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"lint: {lint_code.count(options.app)} Mach-O files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
