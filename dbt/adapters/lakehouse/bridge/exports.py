"""A query's rows as a folder of files, which is there as a whole or not at all; and the query that reads it."""

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
"""The folder beside the location in which files are written first."""
_OWNER = "_lakehouse.json"
"""The file that says which model wrote a location. Spark reads no files whose names begin with an underscore."""
_DONE = "_SUCCESS"
_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
DEFAULTS = {
    "parquet": {},
    "json": _TIMES,
    # What Spark does by itself loses microseconds and white space around texts, and its quotes are no other program's.
    "csv": {**_TIMES, "header": "true", "escape": '"', "ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"},
}
"""Options that both the writer and the reader get, unless the user says otherwise: what is read is what was written."""
_NULL_ALONE = {"nullValue": "\\N"}
_READING = {
    "parquet": {},
    "json": {"mode": "FAILFAST"},
    # An empty field is null, and "" an empty text. With Spark's own null value, which is empty, both would be null. No text holds U+FDD0.
    "csv": {"mode": "FAILFAST", "multiLine": "true", "nullValue": "\ufdd0"},
}


@dataclass(frozen=True)
class Owner:
    """Whose files are in a location: the model's, and which relation of which warehouse it was then, as each target has its own."""

    model: str
    relation: str

    @classmethod
    def of(cls, location: str) -> Owner | None:
        """Who wrote it; None where that is not said. Earlier releases did not say which relation it was for (`relation` is empty)."""
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
    """Raise `DbtDatabaseError` where something is at a location that `owner` has not written."""
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
    """Write the rows beside the location, then put them there in one step, in the place of what `owner` wrote before.

    What fails leaves the location as it is. Raises as `check_place`, and `DbtRuntimeError` where Spark writes elsewhere than here.
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
    """The files that are written to a location, with this number of columns."""
    # In a file of one column a null would be an empty line, which readers of CSV skip, and which Spark does not write.
    alone = _NULL_ALONE if format == "csv" and columns == 1 else {}
    return FilesRead(location, format, None, tuple(sorted({**DEFAULTS[format], **alone, **dict(options)}.items())))


def reading_query(frame: Any, files: FilesRead) -> str:
    """The query that reads the rows of `frame` from the files that they are written to: with its columns, in their order and types."""
    fields = frame.schema.fields
    schema = ", ".join(f"{api.sql.quote_name(field.name)} {_ddl(field.dataType)}" for field in fields)
    options = {**_READING[files.format], **dict(files.options)}
    call = api.sql.call_text(FilesRead(files.path, files.format, schema, tuple(sorted(options.items()))))
    return f"select {', '.join(api.sql.quote_name(field.name) for field in fields)} from {call}"


def _ddl(kind: Any) -> str:
    """A type as Spark parses it, whatever the names of its members are."""
    name = kind.typeName()
    if name == "struct":
        return f"struct<{', '.join(f'{api.sql.quote_name(item.name)}: {_ddl(item.dataType)}' for item in kind.fields)}>"
    if name == "array":
        return f"array<{_ddl(kind.elementType)}>"
    if name == "map":
        return f"map<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return str(kind.simpleString())
