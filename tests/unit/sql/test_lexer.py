"""The lexer loses nothing, and reads literals and names as Spark does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, quote_name, quote_string, significant, string_value, tokenize

FRAGMENTS = [
    "select",
    "a.b",
    "'",
    '"',
    "`",
    "\\",
    "--",
    "/*",
    "*/",
    "/*+",
    "\n",
    " ",
    "$$",
    "$x$",
    "1.5e3",
    ".",
    "r'",
    "é",
    "🎉",
    "${",
    "|>",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS)).map("".join)))
def test_tokens_concatenate_to_the_text(text: str) -> None:
    tokens = list(tokenize(text))
    assert "".join(token.text for token in tokens) == text
    assert [token.start for token in tokens] == [sum(len(one.text) for one in tokens[:index]) for index in range(len(tokens))]
    assert all(text[token.start : token.end] == token.text for token in tokens)


@given(st.text())
def test_quoted_text_reads_back(value: str) -> None:
    for quote, read, kind in ((quote_string, string_value, TokenKind.STRING), (quote_name, name_value, TokenKind.QUOTED)):
        if value or kind is TokenKind.STRING:
            (token,) = tokenize(quote(value))
            assert (token.kind, read(token)) == (kind, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\nb\tc\\d'", "a\nb\tc\\d"),
        (r"'\u0041\101\%\_'", r"AA\%\_"),
        ('"say ""x"""', 'say "x"'),
        (r"r'\n'", r"\n"),
        (r'R"\d+"', r"\d+"),
        ("$$it's$$", "it's"),
        ("$tag$a $$ b$tag$", "a $$ b"),
    ],
)
def test_string_literals_have_sparks_values(text: str, value: str) -> None:
    (token,) = significant(text)
    assert string_value(token) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.b.c", ["a", ".", "b", ".", "c"]),
        ("a.2ef", ["a", ".", "2ef"]),
        ("1.5e3 1L 2.0BD .5 9", ["1.5e3", "1L", "2.0BD", ".5", "9"]),
        ("0.1d 2.0bd 1.e-3f .5D a.30d", ["0.1d", "2.0bd", "1.e-3f", ".5D", "a", ".", "30d"]),  # the last one is a name
        ("1col", ["1col"]),
        ("a/* /* x */ */b", ["a", "b"]),
        ("a--b\nc", ["a", "c"]),
        ("a--b\\\nc\nd", ["a", "d"]),
        ("/*+ h(a) */ x", ["/*+", "h", "(", "a", ")", "*/", "x"]),
        ("hdfs://a/b-c.d x", ["hdfs://a/b-c.d", "x"]),
        ("`a``b`.c", ["`a``b`", ".", "c"]),
        ("array<array<int>>", ["array", "<", "array", "<", "int", ">", ">"]),
        ("x->y=>z|>w::t", ["x", "->", "y", "=>", "z", "|>", "w", "::", "t"]),
    ],
)
def test_words_are_split_as_spark_splits_them(text: str, words: list[str]) -> None:
    assert [token.text for token in significant(text)] == words


@pytest.mark.parametrize("text", ["'a", '"a', "`a", "/* a", "/* /* a */", "select 'it''s"])
def test_what_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="not closed"):
        significant(text)


def test_a_quoted_keyword_is_no_keyword() -> None:
    assert [token.keyword for token in significant("from `from` 'from'")] == ["FROM", "", ""]
    assert Token(TokenKind.WORD, "From", 0, 4).keyword == "FROM"
