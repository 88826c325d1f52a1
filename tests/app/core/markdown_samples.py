"""Markdown as models write it, and a hypothesis strategy for hostile mixtures of its pieces."""

from __future__ import annotations

from hypothesis import strategies as st

ANSWER = """Here is a function that checks for a **palindrome**:

```python
def is_palindrome(text: str) -> bool:
    # blank lines inside code stay

    return text == text[::-1]
```

It works in two steps:

1. Reverse the text
   - with a slice
2. Compare

| Input | Result |
|-------|:------:|
| `abba` | True |
| `abc` | False |

> A quote that
goes on lazily

---

# Notes
Emoji 👩‍👩‍👧 and 日本語 stay whole, and so does `vector<int>`.

~~~
an open fence with ``` inside
"""

PIECES = (
    "word", "日本語", "👩‍👩‍👧", "# head", "- item", "  - nested", "1. one", "> quote", "```",
    "```py", "~~~", "````",
    "   ```", "    code", "| a | b |", "|---|---|", "| 1 | 2 |", "---", "***", "===", "", "", " ", "\t",
    "<div>", "<!-- x",
    "-->", "[a]: /u", "`x`", "``", "a | b", "--|--", "\\", "* x", "+", "2)", "> ```", "- ```", "1. | a |", "\u3000",
)  # fmt: skip

markdown_text = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=30).map("\n".join),
    st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(("\n", " ", ""))).map("".join), max_size=30).map("".join),
    st.text(alphabet="ab `~|->#\n\t*1.=<!\r\x0c", max_size=80),
)


@st.composite
def chunked(draw: st.DrawFn) -> list[str]:
    """A text cut into pieces of any size."""
    text = draw(markdown_text)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
