"""LaTeX formulas as Unicode text: where they stand in Markdown, and how they read without a typesetter."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

LONGEST = 2_000  # characters of a formula; what is longer is shown as it was written
_SPAN = re.compile(
    r"(?P<code>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<escaped>\\\$)"
    r"|\$\$(?P<block>.+?)\$\$"
    r"|\\\[(?P<bracket>.+?)\\\]"
    r"|\\\((?P<round>.+?)\\\)"
    # Not prices: no space inside the signs, no digit before, no letter or digit after.
    r"|(?<![\w$])\$(?=[^\s$])(?P<inline>[^$\n]*?[^\s$\\])\$(?![\w$])",
    re.DOTALL,
)
_RAISED = dict(zip("0123456789+-−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδθφχ′*", (
    "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᶿᵠᵡ′*"), strict=True)) | {"∘": "°", " ": ""}  # fmt: skip
_LOWERED = dict(zip("0123456789+-−=()aehijklmnoprstuvxβγρφχ", (
    "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ"), strict=True)) | {" ": ""}  # fmt: skip
_FUNCTIONS = (
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "exp", "lim",
    "max", "min", "sup", "inf", "det", "gcd", "arg",
)  # fmt: skip
# What these do cannot be shown in a line of text; what they are applied to can.
_SILENT = (
    "left", "right", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "middle", "displaystyle", "textstyle", "limits",
    "nolimits", "boxed", "operatorname", "underbrace", "overbrace", "cancel", "phantom", "mathop", "mathrel", "mathbin", "notag",
    "nonumber", "hline",
)  # fmt: skip
_SIGNS = {"triangle": "△", "implies": "⟹", "iff": "⟺", "to": "→", "mid": "∣", "le": "≤", "ge": "≥", "ne": "≠", "xrightarrow": "→"}
_SPACED = re.compile(r" *([∪∩⊆⊂⊇⊃∈∉∋±∓→←↔↦⇒⇔⟹⟺≤≥≠≈≡∼≅∝×·÷∧∨⊕⊗∥⊥∖∣]) *")
_TIGHT = re.compile(rf"\b({'|'.join(_FUNCTIONS)}) (?=[₀-₉ₐ-ₜ⁰¹²³⁴-⁹⁻_^(])|(?<=[([{{]) | (?=[)\]}}])")
_CASES = re.compile(r"\\begin\{cases\}.*?\\end\{cases\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Formula:
    """``source`` with its delimiters, and how it is ``shown``; ``display``: it stands apart from the text around it."""

    source: str
    shown: str
    display: bool


def take_formulas(text: str, mark: str) -> tuple[str, list[Formula]]:
    """``text`` with ``mark.format(index)`` in place of each formula outside inline code, and the formulas.

    A formula that cannot be read stays as it is.
    """
    found: list[Formula] = []

    def replaced(span: re.Match[str]) -> str:
        latex = next((span[name] for name in ("block", "bracket", "round", "inline") if span[name] is not None), None)
        shown = readable(latex) if latex is not None and len(latex) <= LONGEST else None
        if not shown:
            return span[0]
        found.append(Formula(span[0], shown, span["block"] is not None or span["bracket"] is not None))
        return mark.format(len(found) - 1)

    if "$" not in text and "\\(" not in text and "\\[" not in text:
        return text, []
    return _SPAN.sub(replaced, text), found


@lru_cache(maxsize=512)
def readable(latex: str) -> str | None:
    """A formula as Unicode text; None where it is not LaTeX."""
    from pylatexenc.latexwalker import LatexWalkerError

    try:
        text = _converter()(_scripts(_CASES.sub(lambda cases: cases[0].replace("&", ", "), latex.strip())))
    except (LatexWalkerError, RecursionError, ValueError, IndexError):
        return None
    finally:
        # The parser's exceptions hold the whole stack in a circle, with what the window was drawing. The collector may run on
        # any thread, the engine's too, and nothing of Qt may be freed there: so it runs here and now.
        gc.collect(1)
    lines = (" ".join(_SPACED.sub(r" \1 ", line).split()) for line in text.strip().split("\n"))
    return _TIGHT.sub(lambda found: found[1] or "", "\n".join(line for line in lines if line)).replace(" ,", ",")


@lru_cache(maxsize=1)
def _converter() -> Callable[[str], str]:
    """Turns LaTeX without ^ and _ into text; raises ``LatexWalkerError`` for what is broken."""
    # Imported here, because most chats have no formula and the start of the window need not wait for it.
    from pylatexenc import latex2text, latexwalker
    from pylatexenc.macrospec import std_macro

    grammar = latexwalker.get_default_latex_context_db()
    two = [std_macro(name, "{{") for name in ("dfrac", "tfrac", "cfrac", "binom")]
    grammar.add_context_category("readable", prepend=True, macros=two)
    spec = latex2text.MacroTextSpec
    macros = [spec(name, simplify_repl=_fraction) for name in ("frac", "dfrac", "tfrac", "cfrac")]
    macros += [spec("sqrt", simplify_repl=_root), spec("binom", simplify_repl="C(%(1)s, %(2)s)")]
    macros += [spec(name, simplify_repl=f"{name} ") for name in _FUNCTIONS]
    macros += [spec(name, simplify_repl="") for name in _SILENT]
    macros += [spec(name, simplify_repl=sign) for name, sign in _SIGNS.items()]
    texts = latex2text.get_default_latex_context_db()
    texts.add_context_category("readable", prepend=True, macros=macros)
    texts.set_unknown_macro_spec(spec("", simplify_repl=lambda node: f" {node.macroname} "))
    converter = latex2text.LatexNodes2Text(math_mode="text", latex_context=texts)
    return partial(converter.latex_to_text, tolerant_parsing=False, latex_context=grammar)


def _fraction(node: Any, l2tobj: Any) -> str:
    over, under = (l2tobj.nodelist_to_text([part]).strip() for part in _arguments(node))
    return f"{_grouped(over)}/{_grouped(under)}"


def _root(node: Any, l2tobj: Any) -> str:
    degree, inside = (None, *_arguments(node))[-2:]
    sign = {"3": "∛", "4": "∜"}.get(l2tobj.nodelist_to_text([degree]).strip(" []") if degree is not None else "", "√")
    return sign + _grouped(l2tobj.nodelist_to_text([inside]).strip(), single=True)


def _arguments(node: Any) -> list[Any]:
    return [part for part in (node.nodeargd.argnlist if node.nodeargd is not None else ()) if part is not None]


def _grouped(text: str, single: bool = False) -> str:
    """``text`` in brackets where it is more than one term, or with ``single`` more than one character."""
    simple = re.fullmatch(r"\w" if single else r"[\w.∂∞′⁰¹²³⁴-⁹ⁿ₀-₉]+", text)
    closed = text.startswith("(") and text.endswith(")") and text.count("(") == 1
    return text if simple or closed else f"({text})"


def _scripts(latex: str) -> str:
    """Raised and lowered parts as Unicode characters where all of them exist, else after ^ and _ in brackets."""
    parts, at = [], 0
    while at < len(latex):
        char = latex[at]
        if char == "\\":
            parts.append(latex[at : at + 2])
            at += 2
        elif char in "^_" and at + 1 < len(latex):
            argument, at = _argument(latex, at + 1)
            # A raised letter right after a macro would count as part of its name.
            parts.append("{}" + _script(char, argument))
        else:
            parts.append(char)
            at += 1
    return "".join(parts)


def _script(char: str, argument: str) -> str:
    text = (readable(argument) or argument).replace("\n", " ")
    table = _RAISED if char == "^" else _LOWERED
    if all(each in table for each in text):
        return "".join(table[each] for each in text)
    return f"{char}{text}" if len(text) == 1 else f"{char}({text})"


def _argument(latex: str, at: int) -> tuple[str, int]:
    """What ^ or _ at ``at - 1`` applies to, and where the rest begins."""
    while at < len(latex) - 1 and latex[at] == " ":
        at += 1
    if latex[at] == "\\":
        found = re.compile(r"\\(?:[A-Za-z]+|.)").match(latex, at)
        return (found[0], found.end()) if found else (latex[at], at + 1)
    if latex[at] != "{":
        return latex[at], at + 1
    depth = 0
    for end in range(at, len(latex)):
        depth += {"{": 1, "}": -1}.get(latex[end], 0) if latex[end - 1] != "\\" else 0
        if depth == 0:
            return latex[at + 1 : end], end + 1
    raise ValueError("a brace is not closed")
