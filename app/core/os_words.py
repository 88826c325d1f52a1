"""Why the system refused a file, in the user's language where the reason is a common one."""

from __future__ import annotations

import errno

from app.core.words import mark, tr

REASONS = {
    errno.ENOENT: mark("it is not there"),
    errno.EACCES: mark("no permission"),
    errno.EPERM: mark("no permission"),
    errno.EISDIR: mark("it is a folder"),
    errno.ENOTDIR: mark("its folder is a file"),
    errno.ENOSPC: mark("the disk is full"),
    errno.EROFS: mark("the disk is read-only"),
    errno.ENAMETOOLONG: mark("its name is too long"),
    errno.EIO: mark("the disk reports an error"),
}


def reason(error: OSError) -> str:
    """The reason without a full stop, for a sentence's brackets."""
    known = REASONS.get(error.errno or 0)
    return tr(known) if known else error.strerror or type(error).__name__
