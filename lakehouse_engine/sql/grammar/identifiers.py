"""`IDENTIFIER('a.b')`: a literal that stands for a name, anywhere a name may stand."""

from __future__ import annotations

from lakehouse_engine.catalog.names import split_name
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, quote_name, significant, string_value


def with_names(text: str) -> str:
    """The text with each `IDENTIFIER(<literal>)` replaced by its name. One with another expression stays, and is refused where it matters.

    Raises `SqlError` for a literal that is no name, `UnsupportedSqlError` as `significant`.
    """
    if "identifier" not in text.lower():
        return text
    tokens = significant(text)
    if tokens and tokens[0].keyword == "SET":
        return text
    pieces, position = [], 0
    for number, token in enumerate(tokens):
        end = _end_of_call(tokens, number) if token.keyword == "IDENTIFIER" and token.start >= position else None
        if end is not None:
            name = "".join(string_value(one) for one in tokens[number + 2 : end])
            pieces += [text[position : token.start], ".".join(map(quote_name, split_name(name)))]
            position = tokens[end].end
    return "".join([*pieces, text[position:]])


def _end_of_call(tokens: list[Token], number: int) -> int | None:
    """End of a parenthesis that holds only literals; Spark concatenates adjacent literals."""
    after_dot = number > 0 and tokens[number - 1].keyword == "."
    if after_dot or number + 2 >= len(tokens) or tokens[number + 1].keyword != "(":
        return None
    end = number + 2
    while end < len(tokens) and tokens[end].kind is TokenKind.STRING:
        end += 1
    return end if end > number + 2 and end < len(tokens) and tokens[end].keyword == ")" else None
