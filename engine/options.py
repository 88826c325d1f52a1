"""How a pair is loaded: choices that change its numbers, so that measured costs and kept prefixes belong to them. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import RequestError

BITS = (4, 8)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """``kv_bits`` 4 or 8 keeps the target's keys and values quantised, ``draft_bits`` the draft's weights; None leaves them.
    ``learned`` takes the draft learned from the user's chats where there is one in use.
    ``memory_bytes`` is what models may use: a pair that needs more, with caches of ``context_tokens``, is refused before it is
    read. None asks the machine, 0 checks nothing.
    ``prefix_ram_bytes`` and ``prefix_disk_bytes`` bound the prefix cache; 0 turns a tier off, None leaves it to the machine.

    Raises ``RequestError`` for other values. A family that cannot honour one is refused by ``load`` with a ``ModelError``.
    """

    kv_bits: int | None = None
    draft_bits: int | None = None
    prefix_ram_bytes: int | None = None
    prefix_disk_bytes: int | None = None
    learned: bool = False
    memory_bytes: int | None = None
    context_tokens: int = 4096

    def __post_init__(self) -> None:
        for name, bits in (("kv_bits", self.kv_bits), ("draft_bits", self.draft_bits)):
            if bits is not None and (type(bits) is not int or bits not in BITS):
                raise RequestError(f"{name} is {bits!r}: choose 4 or 8, or leave it out.")
        if type(self.context_tokens) is not int or self.context_tokens < 1:
            raise RequestError(f"context_tokens is {self.context_tokens!r}: give a number of tokens.")
        for name in ("prefix_ram_bytes", "prefix_disk_bytes", "memory_bytes"):
            size = getattr(self, name)
            if size is not None and (type(size) is not int or size < 0):
                raise RequestError(f"{name} is {size!r}: give a number of bytes, 0 for none.")

    def identity(self) -> list[str]:
        """What costs, prefixes and other things kept on disk must agree in: what changes numbers, not how much is kept."""
        return [f"kv_bits={self.kv_bits}", f"draft_bits={self.draft_bits}"]
