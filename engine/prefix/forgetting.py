"""Takes everything that the prefix cache keeps on disk off it, whatever pair it is of. No MLX here."""

from __future__ import annotations

from engine.errors import SlipstreamError
from engine.models.paths import cache_folder
from engine.prefix.disk_files import sweep


def forget_prefixes() -> None:
    """Deletes the stored prefixes of every pair: they hold the tokens of chats. Raises ``SlipstreamError``.

    What a loaded engine holds and may still write is its own to forget: see ``Engine.forget_prefixes``.
    """
    folder = cache_folder() / "prefix"
    try:
        for file in [*folder.glob("*.segment"), folder / "index"]:
            file.unlink(missing_ok=True)
        sweep(folder)
    except OSError as error:
        raise SlipstreamError(
            f"What is kept of prompts in {folder} cannot be deleted ({error.strerror}): delete it by hand."
        ) from error
