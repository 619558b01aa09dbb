"""A position in a statement's tokens, and small grammars that several parsers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, string_value
from lakehouse_engine.sql.grammar.references import Parts

TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_OPERATORS = ("+", "-", "*", "/", "%", "||", "::")
_OPENING = ("(", "[")
_CLOSING = (")", "]")


@dataclass(slots=True)
class Cursor:
    """Reads the significant `tokens` of `text` from `at` on."""

    text: str
    tokens: list[Token]
    at: int = 0

    def peek(self, ahead: int = 0) -> Token | None:
        index = self.at + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else None

    def keyword(self, ahead: int = 0) -> str:
        """Upper-case word or symbol `ahead` of the position; empty for other tokens and beyond the ends."""
        token = self.peek(ahead)
        return token.keyword if token is not None else ""

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    @property
    def offset(self) -> int:
        """Start of the next token, or end of the text."""
        return self.tokens[self.at].start if self.at < len(self.tokens) else len(self.text)

    def end_before(self) -> int:
        """End of the token before the position."""
        return self.tokens[self.at - 1].end if self.at else 0

    def accept(self, *keywords: str) -> bool:
        """Step over `keywords` if they follow in this order."""
        if all(self.keyword(ahead) == keyword for ahead, keyword in enumerate(keywords)):
            self.at += len(keywords)
            return True
        return False

    def accept_any(self, keywords: Iterable[str]) -> str:
        """Step over one of `keywords`; returns it, else an empty string."""
        found = self.keyword()
        if found and found in keywords:
            self.at += 1
            return found
        return ""

    def chain(self) -> tuple[Parts, int, tuple[int, ...]] | None:
        """Read a dotted name: its parts, its start, and the end of each part. None (without moving) if there is none."""
        first = self.peek()
        if first is None or not first.is_name:
            return None
        parts, ends = [name_value(first)], [first.end]
        self.at += 1
        while self.keyword() == ".":
            following = self.peek(1)
            if following is None or not following.is_name:
                break
            parts.append(name_value(following))
            ends.append(following.end)
            self.at += 2
        return tuple(parts), first.start, tuple(ends)

    def skip_group(self) -> bool:
        """Step over a parenthesised group if one starts here. False, without moving, if none does or it is not closed."""
        if self.keyword() not in _OPENING:
            return False
        depth = 0
        for index in range(self.at, len(self.tokens)):
            keyword = self.tokens[index].keyword
            depth += (keyword in _OPENING) - (keyword in _CLOSING)
            if depth == 0:
                self.at = index + 1
                return True
        return False

    def literal(self) -> str | None:
        """Read a string, number or typed literal (`DATE '...'`) as text. None (without moving) for anything else."""
        token, following = self.peek(), self.peek(1)
        if token is None:
            return None
        if token.kind is TokenKind.STRING:
            self.at += 1
            return string_value(token)
        if token.kind is TokenKind.NUMBER:
            self.at += 1
            return token.text
        if token.keyword in TYPED and following is not None and following.kind is TokenKind.STRING:
            self.at += 2
            return string_value(following)
        if token.keyword == "-" and following is not None and following.kind is TokenKind.NUMBER:
            self.at += 2
            return "-" + following.text
        return None

    def expression(self) -> str | None:
        """Step over a value expression: operands (literal, call, name, group, parameter) joined by arithmetic operators.

        Returns its text if it is only a literal, else None.
        """
        value = self._operand()
        alone = True
        while self.keyword() in _OPERATORS:
            self.at += 1
            self._operand()
            alone = False
        return value if alone else None

    def _operand(self) -> str | None:
        value = self.literal()
        if value is not None:
            return value
        if self.accept("INTERVAL"):
            self.literal()
            while self.accept_any(_INTERVAL_UNITS) or self.accept("TO"):
                self.literal()
            return None
        if self.accept_any((":", "-", "+")):
            self.accept_any(("?",))
            self._operand()
            return None
        if self.accept("?") or self.skip_group():
            return None
        if self.chain() is not None:
            self.skip_group()
        return None


_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
_INTERVAL_UNITS = frozenset((*_UNITS, *(unit + "S" for unit in _UNITS)))
