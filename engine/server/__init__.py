"""An OpenAI-compatible HTTP API over one engine: HTTP on a thread of its own, every answer on the engine's thread, in order."""
