"""Writes a query's rows to a folder of files in one step, and makes the query that reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from lakehouse_engine import api
from lakehouse_engine.api.options import FilesRead

_STAGES = ".lakehouse"
"""Folder beside the location that receives the files first."""
_OWNER = "_lakehouse.json"
"""File that records which model wrote a location. Spark skips files whose names start with an underscore."""
_DONE = "_SUCCESS"
_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
DEFAULTS = {
    "parquet": {},
    "json": _TIMES,
    # Spark's defaults lose microseconds and the blanks around texts, and quote in a way that other programs do not read.
    "csv": {**_TIMES, "header": "true", "escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"},
}
"""Options for both writer and reader unless the user overrides them, so that what is read equals what was written."""
_NULL_ALONE = {"nullValue": "\\N"}
_READING = {
    "parquet": {},
    "json": {"mode": "FAILFAST"},
    # An empty field is null and "" is an empty text. Spark's default null value, the empty text, would make both null. No text holds
    # U+FDD0.
    "csv": {"mode": "FAILFAST", "multiLine": "true", "nullValue": "\ufdd0"},
}


@dataclass(frozen=True)
class Owner:
    """Owner of the files at a location: the model, and its relation and warehouse, because each target has its own."""

    model: str
    relation: str

    @classmethod
    def of(cls, location: str) -> Owner | None:
        """Read the owner; None if it is not recorded. Earlier releases recorded no relation (`relation` is empty)."""
        try:
            with open(os.path.join(location, _OWNER), encoding="utf-8") as file:
                found = json.load(file)
            return cls(str(found["model"]), str(found.get("relation") or ""))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, location: str) -> None:
        with open(os.path.join(location, _OWNER), "w", encoding="utf-8") as file:
            json.dump({"model": self.model, "relation": self.relation}, file)


def check_place(location: str, owner: Owner) -> None:
    """Raise `DbtDatabaseError` if the location holds anything that `owner` did not write."""
    if not os.path.lexists(location):
        return
    if os.path.islink(location) or not os.path.isdir(location):
        raise DbtDatabaseError(f"{owner.model}: {location} is no folder: move it away, or give another location")
    theirs = Owner.of(location)
    if (theirs is None or theirs.model != owner.model) and os.listdir(location):
        whose = "somebody else" if theirs is None else theirs.model
        raise DbtDatabaseError(
            f"{owner.model}: {location} was written by {whose}, and would be replaced with all in it: move it away, or give another"
            " location"
        )
    if theirs is not None and theirs.relation and theirs.relation != owner.relation:
        raise DbtDatabaseError(
            f"{owner.model}: {location} has the files of {theirs.relation}, and this run is of {owner.relation}: give each target a"
            " location of its own, such as location='exports/' ~ target.name ~ '/orders', or delete the folder"
        )


def export(frame: Any, files: FilesRead, partition_by: Sequence[str], owner: Owner) -> None:
    """Write the rows beside the location, then replace the earlier files of `owner` in one step.

    On failure the location stays as it is. Raises as `check_place`, and `DbtRuntimeError` if Spark writes to another machine's disk.
    """
    parent, name = os.path.split(files.path)
    os.makedirs(parent, exist_ok=True)
    storage = api.warehouse.LocalStorage(parent)
    area = api.warehouse.staging_area(storage, _STAGES)
    try:
        staged = os.path.join(parent, area.folder())
        frame.write.format(files.format).options(**dict(files.options)).partitionBy(*partition_by).save(staged)
        if not os.path.isfile(os.path.join(staged, _DONE)):
            raise DbtRuntimeError(
                f"{owner.model}: Spark wrote to {parent} of another machine, or of another file system: an external model needs a folder"
                " that dbt and Spark see alike"
            )
        owner.write(staged)
        check_place(files.path, owner)
        if os.path.lexists(files.path):
            storage.exchange_trees(area.folder(), name)
        else:
            storage.rename_tree(area.folder(), name)
    finally:
        area.remove()


def files_of(location: str, format: str, options: Sequence[tuple[str, str]], columns: int) -> FilesRead:
    """Format for files with this number of columns."""
    # With one column a null would be an empty line, which CSV readers skip and Spark does not write.
    alone = _NULL_ALONE if format == "csv" and columns == 1 else {}
    return FilesRead(location, format, None, tuple(sorted({**DEFAULTS[format], **alone, **dict(options)}.items())))


def reading_query(frame: Any, files: FilesRead) -> str:
    """Query that reads the written files back with the columns, order and types of `frame`."""
    fields = frame.schema.fields
    schema = ", ".join(f"{api.sql.quote_name(field.name)} {_ddl(field.dataType)}" for field in fields)
    options = {**_READING[files.format], **dict(files.options)}
    call = api.sql.call_text(FilesRead(files.path, files.format, schema, tuple(sorted(options.items()))))
    return f"select {', '.join(api.sql.quote_name(field.name) for field in fields)} from {call}"


def _ddl(kind: Any) -> str:
    """Type as text that Spark can parse, whatever its member names."""
    name = kind.typeName()
    if name == "struct":
        return f"struct<{', '.join(f'{api.sql.quote_name(item.name)}: {_ddl(item.dataType)}' for item in kind.fields)}>"
    if name == "array":
        return f"array<{_ddl(kind.elementType)}>"
    if name == "map":
        return f"map<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return str(kind.simpleString())
