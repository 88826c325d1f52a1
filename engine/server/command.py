"""The verb ``serve``: its options, and what it says."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import RequestError
from engine.server.origins import as_origin

if TYPE_CHECKING:
    from engine.engine import Engine

KEY_VARIABLE = "SLIPSTREAM_API_KEY"


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """The options of ``serve`` beside the model and the engine's own."""
    verb.add_argument("--host", default="127.0.0.1", help="the address to listen on (default 127.0.0.1: this computer only)")
    verb.add_argument("--port", type=_port, default=8000, metavar="N", help="default 8000; 0: any free one")
    key_help = f"ask every client for this key; better in {KEY_VARIABLE}, which other users of this computer cannot read"
    verb.add_argument("--api-key", metavar="KEY", help=key_help)
    origin_help = "let web pages from there ask, such as http://localhost:3000; * for all; may be given again"
    verb.add_argument("--allow-origin", type=_origin, action="append", default=[], metavar="URL", help=origin_help)
    verb.add_argument("--served-name", metavar="NAME", help="the model's name for clients (default: its id)")
    queue_help = "requests that may wait beside the one being answered (default 32)"
    verb.add_argument("--max-queue", type=_count, default=32, metavar="N", help=queue_help)


def run(arguments: argparse.Namespace, load: Callable[[], Engine], stop: threading.Event) -> int:
    """Serves until ``stop`` is set and returns 0. ``load`` is called once the port is known to be free."""
    from engine.server.settings import ServerSettings, address, bind, is_local

    key = os.environ.get(KEY_VARIABLE) if arguments.api_key is None else arguments.api_key
    if arguments.api_key == "" or arguments.served_name == "":
        raise RequestError("--api-key and --served-name must not be empty: give a text, or leave them out.")
    with bind(arguments.host, arguments.port) as bound:
        local_only = is_local(bound)
        if not (local_only or key):
            print(f"slipstream: anyone who reaches {arguments.host} can use this server: set {KEY_VARIABLE}.", file=sys.stderr)
        engine = load()
        from engine.server.api import public_name
        from engine.server.run import serve
        from engine.terminal import measuring_line

        if arguments.exact:
            engine.measure_exactness(stop, measuring_line())
        settings = ServerSettings(
            host=arguments.host,
            asked_model=arguments.model,
            local_only=local_only,
            name=arguments.served_name,
            api_key=key or None,
            origins=tuple(arguments.allow_origin),
            max_waiting=arguments.max_queue,
            exact=arguments.exact,
        )
        name = settings.name or public_name(engine.info)

        def ready() -> None:
            print(f"Serving {name} at {address(bound)}/v1 (Ctrl-C stops)", flush=True)

        serve(engine, bound, settings, ready, stop)
    engine.close()
    return 0


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)


def _origin(text: str) -> str:
    found = as_origin(text)
    if text != "*" and found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no page's address: give one such as http://localhost:3000, or *")
    return found or text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)
