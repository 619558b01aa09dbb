"""Sources that are plain files (named in the source's `meta`): their SQL, and when they last changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.lakehouse.names import did_you_mean, source_label
from lakehouse_engine import api
from lakehouse_engine.api.errors import OptionError
from lakehouse_engine.api.options import FilesRead, checked_options, files_read

META = "lakehouse"
KEYS = ("format", "path", "schema", "options")
_NAMES = ("name", "identifier")
"""Names allowed in braces in a path, so that one pattern serves all tables of a source."""
_LISTING = ("pathGlobFilter", "recursiveFileLookup", "modifiedAfter", "modifiedBefore")
"""Options that select which files are read."""


def files_of_source(source: Any, root: str) -> str | None:
    """SQL that reads the source's files; None if its meta names no files. Relative paths start at `root`.

    Raises `DbtConfigError` with the source's name.
    """
    of_source, of_table = (getattr(source, "source_meta", None) or {}).get(META), (source.meta or {}).get(META)
    if of_table is None:
        return None
    told = f"{source_label(source)}: meta.{META}"
    given = _merged(of_source, of_table, told)
    for key in given:
        if key not in KEYS:
            raise DbtConfigError(f"{told} has no key '{key}'{did_you_mean(str(key), KEYS)}: it takes {', '.join(KEYS)}")
    try:
        files = files_read(given.get("path"), given.get("format"), given.get("schema"), given.get("options"))
    except OptionError as error:
        raise DbtConfigError(f"{told}: {error.message}") from error
    path = files.path
    for name in _NAMES:
        path = path.replace(f"{{{name}}}", str(getattr(source, name)))
    return api.sql.call_text(FilesRead(below(path, root), files.format, files.schema, files.options))


def _merged(of_source: Any, of_table: Any, told: str) -> dict[str, Any]:
    """Merge the table's keys over its source's. dbt would replace the source's mapping as a whole."""
    for one in (of_source, of_table):
        if one is not None and not isinstance(one, Mapping):
            raise DbtConfigError(f"{told} is a mapping with {', '.join(KEYS)}, not {one!r}")
    source: Mapping[str, Any] = of_source or {}
    given = {**source, **of_table}
    theirs, own = source.get("options"), of_table.get("options")
    if isinstance(theirs, Mapping) and isinstance(own, Mapping):
        given["options"] = {**theirs, **own}
    return given


def options_of(format: str, options: Any) -> tuple[tuple[str, str], ...]:
    """Spark reader options as pairs of texts. Raises `DbtConfigError` for an option that the format does not have."""
    try:
        return checked_options(format, options)
    except OptionError as error:
        raise DbtConfigError(error.message) from error


def below(path: str, root: str) -> str:
    """Path for Spark: addresses unchanged, paths made absolute from `root`."""
    expanded = os.path.expanduser(path.strip())
    return expanded if "://" in expanded or expanded.startswith("file:") else os.path.normpath(os.path.join(root, expanded))


def files_written(spark: Any, text: str) -> datetime | None:
    """Time of the last change among the files that `files_of_source` names. Does not read their contents."""
    files = api.sql.files_called(text)
    listing = {key: value for key, value in files.options if key in _LISTING}
    found = spark.read.format("binaryFile").options(**listing).load(files.path).selectExpr("unix_micros(max(modificationTime)) as written")
    written = found.toArrow().column(0)[0].as_py()
    return None if written is None else datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=written)
