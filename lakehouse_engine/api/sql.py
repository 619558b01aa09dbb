"""Spark SQL texts: parsed, quoted and composed."""

from __future__ import annotations

from lakehouse_engine.options.files import FilesRead
from lakehouse_engine.sql.binding.read_files import call_text, files_of
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.casts import storable, stored_as
from lakehouse_engine.sql.grammar.lexer import quote_name, quote_string
from lakehouse_engine.sql.grammar.relations import FILES_FUNCTION
from lakehouse_engine.sql.grammar.split import first_word, split_statements, takes_limit

__all__ = [
    "call_text",
    "files_called",
    "first_word",
    "is_files_call",
    "quote_name",
    "quote_string",
    "split_statements",
    "storable",
    "stored_as",
    "takes_limit",
]


def is_files_call(name: str) -> bool:
    """True if a relation's name is a call that reads files."""
    return name.startswith(f"{FILES_FUNCTION}(")


def files_called(call: str) -> FilesRead:
    """What a call made by `call_text` reads."""
    (reference,) = scan(f"select * from {call}").references
    return files_of(reference.arguments or ())
