"""Exit codes, and errors as one line or one JSON object on standard error."""

from __future__ import annotations

import json

import click

from lakehouse_engine.errors import (
    ClusteringError,
    CommitConflictError,
    CompactionError,
    IndexingError,
    InstantCleanedError,
    InstantNotFoundError,
    LakehouseError,
    LockTimeoutError,
    OptionError,
    ProtectedFileError,
    RelationNotFoundError,
    RestoreUnfinishedError,
    RollbackError,
    RollbackUnfinishedError,
    SavepointError,
    SqlError,
    UnavailableError,
    UnsupportedSqlError,
    UnsupportedTableError,
    UnsupportedTableVersionError,
    UnsupportedTypeError,
)

DONE, FAILED, USAGE, REFUSED = 0, 1, 2, 3

_CODES: tuple[tuple[type[LakehouseError], int], ...] = (
    (UnavailableError, REFUSED),
    (UnsupportedTableError, REFUSED),
    (UnsupportedTableVersionError, REFUSED),
    (UnsupportedTypeError, REFUSED),
    (UnsupportedSqlError, REFUSED),
    (InstantCleanedError, REFUSED),
    (CommitConflictError, REFUSED),
    (ProtectedFileError, REFUSED),
    (SavepointError, REFUSED),
    (RestoreUnfinishedError, FAILED),
    (RollbackUnfinishedError, FAILED),
    (RollbackError, REFUSED),
    (CompactionError, REFUSED),
    (ClusteringError, REFUSED),
    (IndexingError, REFUSED),
    (LockTimeoutError, REFUSED),
    (InstantNotFoundError, REFUSED),
    (OptionError, USAGE),
    (RelationNotFoundError, FAILED),
    (SqlError, USAGE),  # here: a table name that does not parse
)


def exit_code_of(error: Exception) -> int:
    """2 for wrong usage, 3 for refusals, 1 for everything else."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    return next((code for kind, code in _CODES if isinstance(error, kind)), FAILED)


def show(error: Exception, *, as_json: bool) -> None:
    """Print an expected error on standard error."""
    if as_json:
        context = error.context if isinstance(error, LakehouseError) else {}
        body = {"error": type(error).__name__, "message": _message(error), "context": context, "exit_code": exit_code_of(error)}
        click.echo(json.dumps(body, ensure_ascii=False), err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    else:
        click.echo(f"{type(error).__name__}: {' '.join(str(error).split())}", err=True)


def _message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    return error.message if isinstance(error, LakehouseError) else str(error)
