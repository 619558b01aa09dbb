"""`read_files('path', format => 'csv', header => true)`: plain files as a relation, and the text of such a call."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakehouse_engine.errors import OptionError, UnsupportedSqlError
from lakehouse_engine.options.files import FilesRead, files_read
from lakehouse_engine.sql.grammar.lexer import quote_name, quote_string
from lakehouse_engine.sql.grammar.references import Argument
from lakehouse_engine.sql.grammar.relations import FILES_FUNCTION

_USAGE = f"{FILES_FUNCTION} takes ('path', format => 'csv' [, schema => 'id bigint, ...'] [, option => value ...])"
_WORD = re.compile(r"[A-Za-z_]\w*")


def files_of(arguments: Sequence[Argument]) -> FilesRead:
    """What a call reads. Raises `UnsupportedSqlError` for missing or unclear arguments."""
    positional: list[str] = []
    given: dict[str, str] = {}
    for one in arguments:
        if one.value is None:
            raise UnsupportedSqlError(f"{FILES_FUNCTION}: {one.text} is no literal; {_USAGE}")
        if one.name is None:
            positional.append(one.value)
        elif given.setdefault(one.name.lower(), one.value) is not one.value:
            raise UnsupportedSqlError(f"{FILES_FUNCTION}: {one.name} is given twice")
    if len(positional) + ("path" in given) > 1:
        raise UnsupportedSqlError(f"{_USAGE}; got {len(positional)} arguments without names")
    path = given.pop("path", None) if not positional else positional[0]
    try:
        return files_read(path, given.pop("format", None), given.pop("schema", None), given)
    except OptionError as error:
        raise UnsupportedSqlError(f"{FILES_FUNCTION}: {error.message}; {_USAGE}") from error


def call_text(files: FilesRead) -> str:
    """The call as SQL."""
    named = [("format", files.format), *([("schema", files.schema)] if files.schema is not None else []), *files.options]
    given = [quote_string(files.path), *(f"{_name(key)} => {quote_string(value)}" for key, value in named)]
    return f"{FILES_FUNCTION}({', '.join(given)})"


def _name(key: str) -> str:
    return key if _WORD.fullmatch(key) else quote_name(key)
