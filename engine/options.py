"""How a pair is loaded: choices that change its numbers, so that measured costs and kept prefixes belong to them. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import RequestError

BITS = (4, 8)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """``kv_bits`` 4 or 8 keeps the target's keys and values quantised, ``draft_bits`` the draft's weights; None leaves them.

    Raises ``RequestError`` for other values. A family that cannot honour one is refused by ``load`` with a ``ModelError``.
    """

    kv_bits: int | None = None
    draft_bits: int | None = None

    def __post_init__(self) -> None:
        for name, bits in (("kv_bits", self.kv_bits), ("draft_bits", self.draft_bits)):
            if bits is not None and (type(bits) is not int or bits not in BITS):
                raise RequestError(f"{name} is {bits!r}: choose 4 or 8, or leave it out.")

    def identity(self) -> list[str]:
        """What costs, prefixes and other things kept on disk must agree in."""
        return [f"kv_bits={self.kv_bits}", f"draft_bits={self.draft_bits}"]
