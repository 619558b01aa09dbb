"""A cursor with expectations: what every parser of an engine statement needs, with errors that name the text found."""

from __future__ import annotations

import re
from decimal import Decimal

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.grammar.cursor import Cursor
from lakehouse_engine.sql.grammar.defaults import default_expression
from lakehouse_engine.sql.grammar.generated import generated_expression
from lakehouse_engine.sql.grammar.lexer import QUERY_WORDS, TokenKind, significant, string_value
from lakehouse_engine.sql.grammar.references import Parts, plain
from lakehouse_engine.sql.grammar.statements import ColumnDefinition, Place, Properties, Value

_AFTER_TYPE = ("NOT", "NULL", "DEFAULT", "COMMENT", "GENERATED", "PRIMARY", "CHECK", "UNIQUE", "CONSTRAINT", "REFERENCES", "FIRST", "AFTER")
_BEFORE_NAMES = ("UPDATE", "OPTIMIZE", "VACUUM", "RESTORE", "DESCRIBE", "DESC", "USE", "CALL")
"""Verbs that a name may follow at once."""
_DECIMAL = re.compile(r"-?([0-9]+\.[0-9]*|\.[0-9]+)(BD)?", re.IGNORECASE)


class StatementReader(Cursor):
    """Reads one statement without a final `;`. Every method raises `UnsupportedSqlError` if the text does not fit."""

    __slots__ = ()

    @classmethod
    def over(cls, text: str) -> StatementReader:
        tokens = significant(text)
        while tokens and tokens[-1].text == ";":
            tokens.pop()
        return cls(text[: tokens[-1].end] if tokens else "", tokens)

    def refusal(self, what: str) -> UnsupportedSqlError:
        """The error to raise: `what` was being read, and the words found there."""
        found = self.text[self.offset : self.offset + 40].split("\n")[0] or "the end of the statement"
        words = [token.text.upper() for token in self.tokens[:2]]
        verb = " ".join(words[:1] if words[:1] and words[0] in _BEFORE_NAMES else words)
        return UnsupportedSqlError(f"{verb} on a table of the engine: {what} expected or not supported at {found!r}")

    def expect(self, *keywords: str) -> None:
        if not self.accept(*keywords):
            raise self.refusal(" ".join(keywords))

    def finish(self) -> None:
        """Require the end of the statement."""
        if not self.done:
            raise self.refusal("the end of the statement")

    def parts(self, what: str = "a relation's name") -> Parts:
        """A dotted name without a leading `spark_catalog`."""
        if self.keyword() == "IDENTIFIER" and self.keyword(1) == "(":
            raise UnsupportedSqlError("IDENTIFIER(...) as a relation cannot be resolved; write its name")
        chain = self.chain()
        if chain is None:
            raise self.refusal(what)
        return plain(chain[0])

    def identifier(self, what: str = "a column's name") -> str:
        parts = self.parts(what)
        if len(parts) != 1:
            raise self.refusal(f"{what} (nested fields are not supported)")
        return parts[0]

    def path(self, what: str = "a column's name") -> str:
        """A column or nested field: `a`, or `a.b.c`."""
        chain = self.chain()
        if chain is None or any("." in part for part in chain[0]):
            raise self.refusal(what)
        return ".".join(chain[0])

    def place(self) -> Place | None:
        """`FIRST` or `AFTER name`; None (without moving) if neither follows."""
        if self.accept("FIRST"):
            return Place()
        return Place(self.identifier("the name of a column beside it")) if self.accept("AFTER") else None

    def string(self, what: str) -> str:
        token = self.peek()
        if token is None or token.kind is not TokenKind.STRING:
            raise self.refusal(f"{what} as a string literal")
        self.at += 1
        return string_value(token)

    def identifiers(self) -> tuple[str, ...]:
        """`(a, b, ...)`"""
        self.expect("(")
        names = [self.identifier()]
        while self.accept(","):
            names.append(self.identifier())
        self.expect(")")
        return tuple(names)

    def value(self) -> Value:
        """A literal of any type."""
        token = self.peek()
        word = self.keyword()
        if word in ("TRUE", "FALSE", "NULL"):
            self.at += 1
            return None if word == "NULL" else word == "TRUE"
        text = self.literal()
        if text is None or token is None:
            raise self.refusal("a literal")
        is_number = token.kind is TokenKind.NUMBER or token.text == "-"
        return _number(text) if is_number else text

    def properties(self) -> Properties:
        """`(key [=] value, ...)`; keys are strings or dotted names, values literals."""
        self.expect("(")
        found: list[tuple[str, str]] = []
        while not found or self.accept(","):
            key = self._key()
            self.accept("=")
            value = self.value()
            found.append((key, str(value).lower() if isinstance(value, bool) else str(value)))
        self.expect(")")
        return tuple(found)

    def keys(self) -> tuple[str, ...]:
        """`(key, ...)`"""
        self.expect("(")
        found = [self._key()]
        while self.accept(","):
            found.append(self._key())
        self.expect(")")
        return tuple(found)

    def _key(self) -> str:
        token = self.peek()
        if token is not None and token.kind is TokenKind.STRING:
            return self.string("a property's key")
        chain = self.chain()
        if chain is None:
            raise self.refusal("a property's key")
        return ".".join(chain[0])

    def partition(self) -> tuple[tuple[tuple[str, Value], ...], tuple[str, ...]]:
        """`(a = 1, b)`: pairs with a value, and names without. Refuses `${`, which Spark would replace by a setting's value."""
        self.expect("(")
        static: list[tuple[str, Value]] = []
        dynamic: list[str] = []
        while not (static or dynamic) or self.accept(","):
            name = self.identifier("a partition column")
            if self.accept_any(("=", "==")):
                start, value = self.at, self.value()
                if isinstance(value, str) and "${" in value:
                    self.at = start
                    raise self.refusal("a literal without ${...}")
                static.append((name, value))
            else:
                dynamic.append(name)
        self.expect(")")
        return tuple(static), tuple(dynamic)

    def until(self, *keywords: str) -> str:
        """Text up to one of `keywords` outside parentheses and CASE ... END, or to the end; must not be empty."""
        start, depth, cases = self.at, 0, 0
        while not self.done:
            word = self.keyword()
            if depth == 0 and cases == 0 and word in keywords:
                break
            member = self.keyword(-1) == "."
            depth += (word in ("(", "[")) - (word in (")", "]"))
            if depth < 0:
                break
            cases += (word == "CASE" and not member) - (word == "END" and cases > 0 and not member)
            self.at += 1
        if self.at == start:
            raise self.refusal("an expression")
        return self.text[self.tokens[start].start : self.end_before()]

    def query(self) -> str:
        """The rest of the statement, a query."""
        if self.keyword() not in QUERY_WORDS | {"("}:
            raise self.refusal("a query (SELECT, WITH, FROM, VALUES or TABLE)")
        start = self.offset
        self.at = len(self.tokens)
        return self.text[start:]

    def column(self, *, added: bool = False) -> ColumnDefinition:
        """`name [:] type [NOT NULL] [DEFAULT expression | GENERATED ALWAYS AS (expression)] [COMMENT '...']`.

        An `added` column may be a path and have a place.
        """
        name = self.path() if added else self.identifier()
        self.accept(":")
        type_text = self._type()
        nullable, comment, place, default, generated = True, None, None, None, None
        while not self.done:
            if self.accept("NOT", "NULL"):
                nullable = False
            elif self.accept("COMMENT"):
                comment = self.string("a comment")
            elif default is None and self.accept("DEFAULT"):
                default = default_expression(self, placed=added)
            elif generated is None and self.keyword() == "GENERATED":
                generated = generated_expression(self, name)
            elif added and self.keyword() in ("FIRST", "AFTER"):
                place = self.place()
            elif self.keyword() in _AFTER_TYPE and self.keyword() != "PRIMARY":
                raise self.refusal(f"{self.keyword()} of a column")
            else:
                break
        if default is not None and generated is not None:
            raise UnsupportedSqlError(f"the column {name} is GENERATED and has a DEFAULT: it can have one of them", column=name)
        return ColumnDefinition(name, type_text, nullable, comment, place, default, generated)

    def _type(self) -> str:
        start, depth = self.at, 0
        while not self.done:
            word = self.keyword()
            if depth == 0 and (word in _AFTER_TYPE or word in (",", ")")):
                break
            depth += (word in ("<", "(")) - (word in (">", ")")) - (2 if word == ">>" else 0)
            self.at += 1
        if self.at == start:
            raise self.refusal("a type")
        return self.text[self.tokens[start].start : self.end_before()]

    def type_text(self) -> str:
        """A type, up to a column clause or the end."""
        return self._type()


def _number(text: str) -> int | float | Decimal:
    """A number as Spark reads it: all decimal digits count, unless it is marked as another type."""
    digits = text.rstrip("BDLSYFbdlsyf")
    if digits.lstrip("-").isdigit():
        return int(digits)
    return Decimal(digits) if _DECIMAL.fullmatch(text) else float(digits)
