"""Makes the forms that answers are held to out of constraints, for one model's tokens; imports the library when first needed."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from engine.constraint import Constraint
from engine.decoding.constraint import Guide
from engine.errors import RequestError
from engine.request import GenerationRequest
from engine.text.thinking import TAGS

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer
    from llguidance._lib import JsonCompileOptions

KEPT = 8  # forms: a client sends the same one again and again
LONGEST_REASON = 300
NOTHING = "no answer could have this form"


class Grammars:
    """Of one model: its ``tokenizer``, the size of its ``vocabulary``, and the tokens that end an answer. For any thread."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: frozenset[int]):
        self._tokenizer, self._vocabulary, self._ends = tokenizer, vocabulary, ends
        self._lock = threading.Lock()
        self._tokens: LLTokenizer | None = None
        self._made: dict[tuple[Constraint, str], LLMatcher] = {}

    def check(self, request: GenerationRequest) -> None:
        """Raises ``RequestError`` that says what of the form cannot be honoured; makes it ready otherwise."""
        if request.constraint is not None:
            self._matcher(request.constraint, "")

    def guide(self, request: GenerationRequest, open_tag: str) -> Guide | None:
        """The form of an answer to a prompt that leaves a thought open with ``open_tag``; None: any."""
        if request.constraint is None:
            return None
        matcher = self._matcher(request.constraint, open_tag).deep_copy()
        assert self._tokens is not None
        usual = self._tokenizer.eos_token_id
        return Guide(matcher, self._tokens, self._ends, usual if usual in self._ends else min(self._ends))

    def _matcher(self, constraint: Constraint, open_tag: str) -> LLMatcher:
        """At the beginning of the form, and left there."""
        key = constraint, open_tag
        found = self._made.get(key) or self._compiled(constraint, open_tag)  # not locked: it may take a second
        with self._lock:
            self._made.setdefault(key, found)
            while len(self._made) > KEPT:
                del self._made[next(iter(self._made))]
        return found

    def _compiled(self, constraint: Constraint, open_tag: str) -> LLMatcher:
        from llguidance import LLMatcher, LLParserLimits

        tokens = self._tokens = self._tokens or self._read_tokens(constraint)
        grammar = _grammar(constraint)
        if open_tag:
            grammar = self._behind_thought(grammar, dict(TAGS)[open_tag])
        matcher = LLMatcher(tokens, grammar, log_level=0, limits=LLParserLimits(verbose_errors=False))
        reason = matcher.get_error()
        if not reason and not any(matcher.compute_bitmask()):
            reason = matcher.get_error() or NOTHING
        if not reason and matcher.is_stopped() and not matcher.is_accepting():
            reason = NOTHING
        if reason:
            raise _refusal(constraint, reason)
        return matcher

    def _behind_thought(self, grammar: str, closing: str) -> str:
        """``grammar`` behind any text that ends with the tag ``closing``, a token that means nothing else where there is one."""
        assert self._tokens is not None
        token = self._tokenizer.convert_tokens_to_ids(closing)  # the unknown token's where there is no such token
        known = token is not None and self._tokenizer.convert_ids_to_tokens(token) == closing
        special = known and self._tokens.is_special_token(token)
        thought = f"thought: /(.|\\n)*/ <[{token}]>" if special else f"thought[suffix={json.dumps(closing)}]: /(.|\\n)*/"
        forms = json.loads(grammar) if grammar.startswith("{") else {"grammars": [{"lark_grammar": grammar}]}
        forms["grammars"][0]["name"] = "form"
        forms["grammars"].insert(0, {"lark_grammar": f"start: thought /\\s{{0,4}}/ @form\n{thought}\n"})
        return json.dumps(forms)

    def _read_tokens(self, constraint: Constraint) -> LLTokenizer:
        from llguidance.hf import from_tokenizer

        try:
            if not self._ends:
                raise ValueError("none of them ends an answer")
            size = max(self._vocabulary, len(self._tokenizer))
            return from_tokenizer(self._tokenizer._tokenizer, n_vocab=size, eos_token=sorted(self._ends))
        except (ValueError, AttributeError) as error:
            raise RequestError(f"{constraint.name} cannot be used with this model: its tokens cannot be read ({error}).") from None


def _grammar(constraint: Constraint) -> str:
    from llguidance import LLMatcher
    from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

    if constraint.kind == "regex":
        return LLMatcher.grammar_from_regex(constraint.text)
    try:
        if constraint.kind == "grammar":
            return LLMatcher.grammar_from_lark(any_to_lark(constraint.text))
        # No blank space: models get lost in it, and without it keys and braces leave no choice.
        strictly: JsonCompileOptions = {"whitespace_flexible": False, "lenient": False, "coerce_one_of": False}
        return LLMatcher.grammar_from_json_schema(constraint.text, overrides=strictly)
    except (ValueError, GbnfToLarkError, RecursionError) as error:
        raise _refusal(constraint, str(error)) from None


def _refusal(constraint: Constraint, reason: str) -> RequestError:
    text = " ".join(reason.split())
    text = text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + " ..."
    return RequestError(f"{constraint.name} cannot be honoured ({text}): change that part of the schema or grammar.")
