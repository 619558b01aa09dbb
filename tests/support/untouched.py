"""A table in a directory of its own, and the proof that a refused write left no trace anywhere around it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write.create import TableSpec, create_table

OPTIONS = {"lakehouse.task.threads": 1}


def make_table(path: Path, schema: pa.Schema, *, key: Sequence[str] = ("id",), ordering: Sequence[str] = (), **spec: Any) -> HoodieTable:
    """A new, empty table in `path`."""
    storage = LocalStorage(str(path))
    create_table(storage, TableSpec("t", schema, record_key=key, ordering_fields=ordering, **spec))
    return HoodieTable(storage, options=OPTIONS)


def files_below(directory: Path) -> dict[str, bytes]:
    """Every file below, with its content, and every link, with its target; not the lock file, which any write makes."""
    found: dict[str, bytes] = {}
    for path in directory.rglob("*"):
        if path.is_symlink():
            found[str(path)] = os.readlink(path).encode()
        elif path.is_file() and ".locks" not in path.parts:
            found[str(path)] = path.read_bytes()
    return found


def refused(around: Path, error: type[LakehouseError], write: Callable[[], object], match: str | None = None) -> LakehouseError:
    """The error of a write that must be refused with every file below `around` as it was."""
    before = files_below(around)
    with pytest.raises(error, match=match) as caught:
        write()
    after = files_below(around)
    assert sorted(after) == sorted(before)
    assert after == before
    return caught.value


def rows_of(table: HoodieTable, key: str = "id") -> Mapping[Any, dict[str, Any]]:
    """The rows by key; each key once."""
    rows = table.to_arrow().to_pylist()
    found = {row[key]: row for row in rows}
    assert len(found) == len(rows)
    return found
