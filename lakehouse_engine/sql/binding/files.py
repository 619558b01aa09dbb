"""Statements that access files, which `allow_files=False` refuses.

Spark reads and writes any file that its process can (`csv.`/etc/passwd``, INSERT OVERWRITE DIRECTORY, ADD JAR) and runs programs
(TRANSFORM, reflect). Statements for Spark are therefore checked against a list of harmless verbs; other verbs are refused, and so is each
word that leads to files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from lakehouse_engine.errors import UnsupportedSqlError
from lakehouse_engine.sql.binding.scan import scan
from lakehouse_engine.sql.grammar.lexer import Token, TokenKind, name_value, significant, words
from lakehouse_engine.sql.grammar.references import Parts, Reference, plain

ON_FILES_KEY = "spark.sql.runSQLOnFiles"
"""Spark's own switch for paths as relations, turned off in the session so that no spelling escapes this module."""

_VERBS = words("SELECT WITH FROM VALUES TABLE ( EXPLAIN DESCRIBE DESC SHOW USE CACHE UNCACHE CLEAR DECLARE DROP SET CREATE")
_EXPLAINED = words("EXPLAIN LOGICAL FORMATTED EXTENDED CODEGEN COST ANALYZE")
_CREATED = words("CREATE OR REPLACE GLOBAL TEMPORARY TEMP")
READS_FILES = "read_files(...)"
_PROGRAMS = words("REFLECT JAVA_METHOD TRY_REFLECT READ_FILES CLOUD_FILES")
_FORMATS = words("csv json parquet orc text xml avro binaryfile image libsvm delta hudi iceberg jdbc hive")
_SETTINGS = ("spark.sql.runsqlonfiles", "spark.sql.catalog", "spark.jars", "spark.hadoop.")
_REMEDY = "which this warehouse was opened not to allow (allow_files: false)"


def check_no_files(text: str, knows: Callable[[Parts], bool]) -> None:
    """Refuse a statement for Spark that may read or write files, or run a program. `knows` is as in `route`.

    Raises `UnsupportedSqlError` with the construct.
    """
    tokens = significant(text)
    _check_verb(tokens)
    for number, token in enumerate(tokens):
        following = tokens[number + 1].keyword if number + 1 < len(tokens) else ""
        if token.is_name and name_value(token).upper() in _PROGRAMS and following == "(":
            raise refusal(f"{name_value(token).lower()}(...)")
        if token.keyword == "INSERT" and following in ("INTO", "OVERWRITE"):
            raise refusal(f"INSERT {following} what is no table of the warehouse")
        if token.keyword in ("MAP", "REDUCE", "TRANSFORM") and _runs_a_program(tokens[number:]):
            raise refusal(f"{token.keyword} ... USING a program")
    for reference in scan(text).references:
        _check_reference(reference, knows)


def refusal(what: str) -> UnsupportedSqlError:
    """Error for files where they are not allowed."""
    return UnsupportedSqlError(f"{what} reads or writes files, {_REMEDY}")


def _check_verb(tokens: Sequence[Token]) -> None:
    rest = list(tokens)
    while rest and rest[0].keyword in _EXPLAINED:
        rest.pop(0)
    verb = rest[0].keyword if rest else ""
    if rest and verb not in _VERBS:
        raise refusal(f"{verb or rest[0].text} {rest[1].text if len(rest) > 1 else ''}".strip())
    if verb == "CREATE":
        _check_create(rest)
    if verb == "SET":
        key = "".join(token.text for token in rest[1:]).strip("`").lower()
        if key.startswith(_SETTINGS):
            raise refusal(f"SET {key.split('=')[0]}")


def _check_create(tokens: Sequence[Token]) -> None:
    """Accept a view over a query; refuse anything that names a file or class: a data source, a function's jar, a Spark table."""
    noun = next((token.keyword for token in tokens if token.keyword not in _CREATED), "")
    before_query = []
    for token in tokens:
        if token.keyword == "AS":
            break
        before_query.append(token.keyword)
    if noun != "VIEW" or "USING" in before_query:
        raise refusal(f"CREATE {noun}{' ... USING' if 'USING' in before_query else ''}")


def _runs_a_program(tokens: Sequence[Token]) -> bool:
    """True if USING and a text follow, as in `MAP a, b USING 'script'`."""
    pairs = itertools.pairwise(tokens)
    return any(one.keyword == "USING" and following.kind is TokenKind.STRING for one, following in pairs)


def _check_reference(reference: Reference, knows: Callable[[Parts], bool]) -> None:
    parts = plain(reference.parts)
    if reference.arguments is not None or knows(parts):
        return
    name = ".".join(parts)
    if reference.obstacle is not None:
        raise refusal(f"{name} with {reference.obstacle}")
    if len(parts) > 1 and (parts[0].lower() in _FORMATS or "." in parts[0]):
        raise refusal(f"the relation {name}")
    if any(sign in part for part in parts for sign in "/\\:"):
        raise refusal(f"the relation {name}")
