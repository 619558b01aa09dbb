"""Spark SQL text as tokens, without loss: the tokens concatenate to the text.

Rules are those of Spark's `SqlBaseLexer` (nested comments, hints as code, `--` comments that continue after a backslash at the line's end,
identifiers that start with a digit) with default settings: double quotes delimit strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import UnsupportedSqlError


class TokenKind(StrEnum):
    """Kind of a token; `QUOTED` is a name in backticks."""

    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"
    NUMBER = "number"
    WORD = "word"
    QUOTED = "quoted"
    SYMBOL = "symbol"
    INVALID = "invalid"


class Token(NamedTuple):
    """`start` and `end` (exclusive) are code-point offsets into the text."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """Upper-case text of a bare word, the text of a symbol, else empty (so that `'from'` is never FROM)."""
        if self.kind is TokenKind.WORD:
            return self.text.upper()
        return self.text if self.kind is TokenKind.SYMBOL else ""

    @property
    def is_name(self) -> bool:
        return self.kind is TokenKind.WORD or self.kind is TokenKind.QUOTED


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--(?:\\\r?\n|[^\r\n])*)
  | (?P<block>/\*(?!\+))
  | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:\d+\.\d*(?:[eE][+-]?\d+)?(?i:BD|[DF])?|(?:\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?)(?!\w))
  | (?P<word>[A-Za-z]+://[\w/\-.?=&\#%]+|\w+)
  | (?P<invalid>['"`].*)
  | (?P<symbol>/\*\+|\*/|\|>|\|\||=>|->|::|\$\{|<=>|<=|>=|<>|!=|==|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_KINDS = {kind.value: kind for kind in TokenKind}


def tokenize(text: str) -> Iterator[Token]:
    """Every token of `text`, white space and comments included. An unclosed literal or comment is one INVALID token to the end."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:  # pragma: no cover - the last alternative takes any character
            raise UnsupportedSqlError(f"cannot read the statement at offset {position}")
        name = match.lastgroup if match.lastgroup != "tag" else "string"
        end = match.end()
        kind = TokenKind.STRING
        if name == "block":
            closed = _comment_end(text, position)
            kind, end = (TokenKind.INVALID, len(text)) if closed is None else (TokenKind.COMMENT, closed)
        elif name is not None:
            kind = _KINDS[name]
        yield Token(kind, text[position:end], position, end)
        position = end


def _comment_end(text: str, start: int) -> int | None:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return None


def significant(text: str) -> list[Token]:
    """Tokens that Spark's parser sees. Raises `UnsupportedSqlError` for an unclosed literal, quoted name or comment."""
    found = []
    for token in tokenize(text):
        if token.kind is TokenKind.INVALID:
            raise UnsupportedSqlError(f"a literal, quoted name or comment is not closed, from offset {token.start} on: {token.text[:20]!r}")
        if token.kind is not TokenKind.SPACE and token.kind is not TokenKind.COMMENT:
            found.append(token)
    return found


_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def words(text: str) -> frozenset[str]:
    """The keywords in `text`, for lookup tables."""
    return frozenset(text.split())


QUERY_WORDS = words("SELECT WITH FROM VALUES TABLE MAP REDUCE")
"""Words that start a query without a parenthesis."""


def string_value(token: Token) -> str:
    """The value of a STRING token (Spark's `unescapeSQLString`)."""
    text = token.text
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        edge = text.index("$", 1) + 1
        return text[edge:-edge]
    quote = text[0]

    def replace(match: re.Match[str]) -> str:
        code = match.group(1)
        if code is None:
            return quote if match.group() == quote * 2 else match.group()
        if len(code) > 1 and code[0] in "uU":
            return chr(int(code[1:], 16))
        if len(code) == 3:
            return chr(int(code, 8))
        return _ESCAPED.get(code, code)

    return _ESCAPE.sub(replace, text[1:-1])


def is_plain_string(token: Token) -> bool:
    """True if a STRING token means the same under any session settings for escapes, double quotes and variables (`${name}`)."""
    return token.text.startswith("'") and "\\" not in token.text and "''" not in token.text[1:-1] and "${" not in token.text


def name_value(token: Token) -> str:
    """Identifier of a WORD or QUOTED token, with its case."""
    return token.text[1:-1].replace("``", "`") if token.kind is TokenKind.QUOTED else token.text


def quote_name(name: str) -> str:
    """`name` between backquotes."""
    return "`" + name.replace("`", "``") + "`"


def quote_string(value: str) -> str:
    """`value` as a string literal in single quotes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
