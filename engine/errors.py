"""The errors a user can meet. Each is one line that names the next action; anything else that escapes is our fault."""


class SlipstreamError(Exception):
    """Something the user can act on. ``str(error)`` is one line: what is wrong, and what to do next."""


class ModelError(SlipstreamError):
    """A model, draft or checkpoint file cannot be used."""


class NotEnoughMemory(ModelError):
    """A pair does not fit this machine's memory. Bytes: ``needed`` by it, ``available`` to models here."""

    def __init__(self, name: str, context: int, needed: int, available: int):
        self.needed, self.available = needed, available
        super().__init__(
            f"{name} needs about {needed / 1e9:,.1f} GB of memory with {context:,} tokens of context, and models may use "
            f"{available / 1e9:,.1f} GB here: choose a smaller model."
        )


class UnknownModel(ModelError):
    """The name of a model or pair means nothing here: a mistyped id or path."""


class SetupError(SlipstreamError):
    """The starter pair or a system part could not be set up."""


class RequestError(SlipstreamError):
    """The request itself cannot be answered: empty, out of range or not supported."""


class ContextOverflow(RequestError):
    """The prompt does not fit the model's context."""

    def __init__(self, prompt_tokens: int, context_length: int):
        self.prompt_tokens, self.context_length = prompt_tokens, context_length
        super().__init__(
            f"The prompt has {prompt_tokens:,} tokens and the model's context holds {context_length:,}: "
            "shorten it or start a new chat."
        )


class Cancelled(SlipstreamError):
    """Loading or setting up was cancelled by the user."""
