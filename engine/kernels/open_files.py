"""mlx-lm asks for more open files when it is imported, and cannot be imported where the system does not allow as many."""

from __future__ import annotations

import resource

ASKED_FOR = 4096  # by mlx-lm


def be_content_with_fewer() -> None:
    """Call before mlx-lm is imported: where the limit may not be raised, asking for more takes what there is.

    A shell's `ulimit -n 1024` is such a limit, and is enough for a model.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most == resource.RLIM_INFINITY or most >= ASKED_FOR:
        return
    ask = resource.setrlimit

    def ask_or_take(kind: int, limits: tuple[int, int]) -> None:
        try:
            ask(kind, limits)
        except ValueError:
            if kind != resource.RLIMIT_NOFILE:
                raise
            ask(kind, (min(limits[0], most), most))

    resource.setrlimit = ask_or_take
