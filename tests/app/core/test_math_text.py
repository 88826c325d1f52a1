"""LaTeX as Unicode text: what counts as a formula, how it reads, and that nothing that cannot be read is lost."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.math_text import LONGEST, readable, take_formulas


def shown(text: str) -> str:
    marked, formulas = take_formulas(text, "\ue000{}\ue001")
    for index, formula in enumerate(formulas):
        marked = marked.replace(f"\ue000{index}\ue001", formula.shown)
    return marked


@pytest.mark.parametrize(("latex", "text"), [
    (r"x^2 + y_1 = z^{10}_i", "x² + y₁ = z¹⁰ᵢ"),
    (r"\frac{a+b}{2c}", "(a+b)/2c"),
    (r"x = \frac{-b \pm \sqrt{b^2-4ac}}{2a}", "x = (-b ± √(b²-4ac))/2a"),
    (r"\sum_{i=1}^{n} i", "∑ᵢ₌₁ⁿ i"),
    (r"e^{i\pi} + 1 = 0", "e^(iπ) + 1 = 0"),
    (r"\lim_{x \to \infty} \sin(x)", "lim_(x → ∞) sin(x)"),
    (r"\log_2 n \leq \sqrt[3]{n}", "log₂ n ≤ ∛n"),
    (r"90^\circ", "90°"),
    (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a = b\nc = d"),
    (r"\mathbb{R}^n \ni \vec{v}", "ℝⁿ ∋ v⃗"),
    (r"\text{if } A \subseteq B", "if A ⊆ B"),
    (r"\frac12", "1/2"),
])  # fmt: skip
def test_formulas_read_as_a_person_would_write_them(latex, text):
    assert readable(latex) == text


@pytest.mark.parametrize(("text", "plain"), [
    ("Euler: $e^x$, and \\(y\\) or \\[z_1\\].", "Euler: eˣ, and y or z₁."),
    ("$$\nE = mc^2\n$$", "E = mc²"),
    ("Coffee is $5 and cake $10.", "Coffee is $5 and cake $10."),
    ("US$5) and (US$10) or $3-$5", "US$5) and (US$10) or $3-$5"),
    ("A$AP and US$a$ stay", "A$AP and US$a$ stay"),
    ("`$x^2$` and ``\\(y^2\\)`` stay", "`$x^2$` and ``\\(y^2\\)`` stay"),
    ("echo $HOME/bin:$PATH", "echo $HOME/bin:$PATH"),
    ("\\$x^2\\$ is escaped", "\\$x^2\\$ is escaped"),
    ("$\\frac{1}{$ is broken", "$\\frac{1}{$ is broken"),
])  # fmt: skip
def test_only_formulas_are_touched(text, plain):
    assert shown(text) == plain


def test_an_unknown_command_keeps_its_name():
    assert readable(r"\frobnicate{x}") == "frobnicate x"


def test_a_formula_keeps_its_source_and_whether_it_stands_apart():
    _, formulas = take_formulas("$a_1$ then $$b$$", "{}")
    assert [(formula.source, formula.display) for formula in formulas] == [("$a_1$", False), ("$$b$$", True)]


@given(st.text(alphabet="$\\{}[]()^_ab1 \n`&frac", max_size=40))
def test_no_text_breaks_it_and_what_is_no_formula_stays(text):
    marked, formulas = take_formulas(text, "\ue000{}\ue001")
    for index, formula in enumerate(formulas):
        marked = marked.replace(f"\ue000{index}\ue001", formula.source)
    assert marked == text


def test_a_huge_formula_is_left_alone():
    text = "$" + "x" * (LONGEST + 1) + "$"
    assert take_formulas(text, "{}") == (text, [])


@pytest.mark.parametrize("latex", ["q^{2}", "\\frac{a", "a_", "\\left("])
def test_reading_a_formula_holds_nothing_of_who_asked(latex):
    # What is held goes when the collector runs, on any thread, and for a window's things that is a crash.
    class Drawing:
        pass

    def draw() -> weakref.ref[Drawing]:
        drawing = Drawing()
        readable(latex + "  ")  # as no other test writes it: what was read once is kept
        return weakref.ref(drawing)

    gc.collect()
    gc.disable()
    try:
        assert draw()() is None
    finally:
        gc.enable()
