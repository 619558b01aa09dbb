"""Splitting a text into statements: hooks and SQL headers may hold several, and a trailing `;` is common."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*"|`(?:``|[^`])*`|;|[^;'"`/\-rR]+|.""",
    re.DOTALL,
)
_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/", re.DOTALL)


def split_statements(text: str) -> list[str]:
    """The statements of `text`, without their `;`; pieces that are only comments are dropped. A SQL script (BEGIN ... END) is one."""
    if strip_comments(text)[:6].upper().rstrip() in ("BEGIN", "BEGIN\n"):
        return [text.strip().rstrip(";")]
    statements: list[str] = []
    current: list[str] = []
    for token in _TOKEN.findall(text):
        if token == ";":
            statements.append("".join(current))
            current = []
        else:
            current.append(token)
    statements.append("".join(current))
    return [statement.strip() for statement in statements if strip_comments(statement)]


def strip_comments(text: str) -> str:
    """`text` without the comments and blanks it starts with (dbt puts its query comment first)."""
    position = 0
    while (found := _COMMENT.match(text, position)) and found.end() > position:
        position = found.end()
    return text[position:]
