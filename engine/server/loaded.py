"""What serving needs of an engine, and what the routes know of the loaded one without touching it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine import Event, GenerationRequest, PairInfo

if TYPE_CHECKING:
    from engine.server.answers import Vocabulary
    from engine.text.tool_calls import ToolSyntax


class Servable(Protocol):
    """An engine as the server uses it: all but ``info`` and ``check`` on the engine's own thread."""

    @property
    def info(self) -> PairInfo: ...

    @property
    def stop_ids(self) -> frozenset[int]: ...

    @property
    def tool_syntax(self) -> ToolSyntax | None: ...

    def token_bytes(self) -> dict[int, bytes]: ...

    def check(self, request: GenerationRequest) -> int: ...

    def generate(self, request: GenerationRequest, cancel: threading.Event | None = None) -> Iterator[Event]: ...

    def settle(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the routes know of the engine: it belongs to another thread."""

    info: PairInfo
    stop_ids: frozenset[int]
    vocabulary: Vocabulary
    syntax: ToolSyntax | None

    @classmethod
    def of(cls, engine: Servable) -> Loaded:
        """Call on the engine's thread."""
        from engine.server.answers import Vocabulary

        return cls(engine.info, engine.stop_ids, Vocabulary(engine.token_bytes()), engine.tool_syntax)
