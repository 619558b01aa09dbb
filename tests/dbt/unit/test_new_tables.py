"""A new table is under its name when it is whole, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from lakehouse_engine.errors import SqlError, TableExistsError

ROOT = Path(__file__).resolve().parents[3]
SHAPE = TableShape(("id",), (), (), True)
ROWS = pa.table({"id": [1, 2]})
KILLED = """
import os, signal, sys
import pyarrow as pa
from dbt.adapters.lakehouse.bridge import warehouse as bridge
from lakehouse_engine.storage.local import LocalStorage

calls, last = [], int(sys.argv[2])
for name in ("create", "overwrite", "delete", "delete_tree", "rename_tree"):
    def counted(self, *arguments, _do=getattr(LocalStorage, name), **more):
        answer = _do(self, *arguments, **more)
        calls.append(arguments)
        if len(calls) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    setattr(LocalStorage, name, counted)
house = bridge.Warehouse(sys.argv[1], options={"lakehouse.task.threads": 1})
house.create_filled("s", "t", pa.table({"id": [1, 2]}), bridge.TableShape(("id",), (), (), True), {}, {})
"""


def warehouse(folder: Path) -> Warehouse:
    return Warehouse(str(folder), options={"lakehouse.task.threads": "1"})


def killed_after(calls: int, folder: Path) -> bool:
    command = [sys.executable, "-c", KILLED, str(folder), str(calls)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize("calls", [3, 8, 15, 16])
def test_a_first_build_that_is_killed_leaves_a_whole_table_or_none(tmp_path: Path, calls: int) -> None:
    """An incremental model whose table is there and empty asks for news of what it never had."""
    assert killed_after(calls, tmp_path)
    house = warehouse(tmp_path)
    assert set(house.schemas()) <= {"s"}
    if house.kind("s", "t") is None:
        house.create_filled("s", "t", ROWS, SHAPE, {}, {})
    assert house.table("s", "t").to_arrow().num_rows == 2
    house.create_filled("s", "u", ROWS, SHAPE, {}, {})
    assert [one for home in (tmp_path, tmp_path / "s") if (home / ".staged").exists() for one in os.listdir(home / ".staged")] == []


def test_what_got_the_name_while_a_table_was_filled_stays(tmp_path: Path) -> None:
    house, other = warehouse(tmp_path), warehouse(tmp_path)

    class Slow:
        schema = ROWS.schema
        column_names = ROWS.column_names

        def __arrow_c_stream__(self, requested=None):
            other.create_filled("s", "T", pa.table({"id": [7]}), SHAPE, {}, {})
            return ROWS.__arrow_c_stream__(requested)

    with pytest.raises(TableExistsError, match="was created by another process meanwhile"):
        house.create_filled("s", "t", Slow(), SHAPE, {}, {})
    assert house.table("s", "t").to_arrow()["id"].to_pylist() == [7]
    assert house.relations("s") == [("T", "table")]


@pytest.mark.parametrize("name", [".hidden", "a/b", "n" * 201])
def test_a_name_that_no_directory_can_have_is_refused(tmp_path: Path, name: str) -> None:
    house = warehouse(tmp_path)
    with pytest.raises(SqlError, match="cannot be the name of a relation"):
        house.create_filled("s", name, ROWS, SHAPE, {}, {})
    with pytest.raises(SqlError, match="cannot be the name of a relation"):
        house.create_view("s", name, "select 1 as id")
    assert house.schemas() == []
