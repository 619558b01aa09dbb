"""A first build in a bucket: nobody finds its table before it is whole, and what a killed one left is in nobody's way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from dbt.adapters.lakehouse.bridge.shapes import TableShape
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from tests.object_store.dbt_store import Store, s3_store

__all__ = ["s3_store"]

ROOT = Path(__file__).resolve().parents[2]
ROWS = pa.table({"id": [1, 2]})
SHAPE = TableShape(("id",), (), (), True)
KILLED = """
import json, os, signal, sys
import pyarrow as pa
from dbt.adapters.lakehouse.bridge import shapes, warehouse
from lakehouse_engine.table import HoodieTable

write = HoodieTable.bulk_insert
def killed(*arguments, **more):
    if sys.argv[3] == "after":
        write(*arguments, **more)
    os.kill(os.getpid(), signal.SIGKILL)
HoodieTable.bulk_insert = killed
house = warehouse.Warehouse(sys.argv[1], storage_options=json.loads(sys.argv[2]))
house.create_filled("s", "t", pa.table({"id": [7]}), shapes.TableShape(("id",), (), (), True), {}, {})
"""


def house(store: Store, name: str) -> Warehouse:
    return Warehouse(store.place(name), storage_options=store.options)


def test_a_table_is_found_when_it_is_whole(s3_store: Store) -> None:
    seen = []

    class Watched:
        schema, column_names = ROWS.schema, ROWS.column_names

        def __arrow_c_stream__(self, requested=None):
            other = house(s3_store, "seen")
            seen.append((other.kind("s", "t"), other.relations("s")))
            return ROWS.__arrow_c_stream__(requested)

    house(s3_store, "seen").create_filled("s", "t", Watched(), SHAPE, {}, {})
    assert seen == [(None, [])]
    assert house(s3_store, "seen").table("s", "t").to_arrow().num_rows == 2


def test_what_a_killed_build_left_is_no_table_and_the_next_one_has_its_own_rows(s3_store: Store) -> None:
    for moment in ("before", "after"):
        place = f"killed-{moment}"
        command = [sys.executable, "-c", KILLED, s3_store.place(place), json.dumps(dict(s3_store.options)), moment]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == -9, done.stderr
        again = house(s3_store, place)
        assert again.kind("s", "t") is None
        again.create_filled("s", "t", ROWS, SHAPE, {}, {})
        assert again.table("s", "t").to_arrow()["id"].to_pylist() == [1, 2]
