"""What a table's writer refuses and keeps, without Spark: rows come as Arrow, as those of seeds do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.config.model_config import ModelConfig
from dbt.adapters.lakehouse.writing.writes import TableWriter
from lakehouse_engine.errors import ConstraintError

ROWS = pa.table({"id": pa.array([1], pa.int64()), "p": ["x"], "code": ["abc"]})


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path), options={"lakehouse.task.threads": 1})


def writer(warehouse: Warehouse, lengths: dict[str, int | None] | None = None, **config: object) -> TableWriter:
    node = {"name": "orders", "unique_id": "model.p.orders", "resource_type": "model", "config": {"materialized": "incremental", **config}}
    return TableWriter(warehouse, "s", "orders", ModelConfig.from_node(node, {}), lengths=lengths or {})


def test_an_increment_with_another_form_of_partition_paths_is_refused(warehouse: Warehouse) -> None:
    writer(warehouse, unique_key="id", partition_by="p").create(ROWS)
    changed = writer(warehouse, unique_key="id", partition_by="p", hive_style_partitioning=False)
    for write in (changed.append, changed.merge, changed.insert_overwrite):
        with pytest.raises(DbtDatabaseError, match=r"hive_style_partitioning is false but the table was built with true; .*--full-refresh"):
            write(ROWS)
    assert len(warehouse.table("s", "orders").history()) == 1


def test_the_form_of_partition_paths_matters_to_partitioned_tables_only(warehouse: Warehouse) -> None:
    writer(warehouse, unique_key="id").create(ROWS)
    changed = writer(warehouse, unique_key="id", hive_style_partitioning=False)
    changed._check_shape(changed._stored, ROWS)


def test_lengths_of_texts_are_kept_by_the_table_and_follow_the_config(warehouse: Warehouse) -> None:
    writer(warehouse, {"code": 3}).replace(ROWS, existing=None)
    table = warehouse.table("s", "orders")
    assert table.config.constraints.length_of("code") == 3
    longer = ROWS.set_column(2, "code", pa.array(["abcd"]))
    with pytest.raises(ConstraintError, match="VARCHAR\\(3\\)"):
        table.insert(longer)
    writer(warehouse, {"code": 4}).replace(longer, existing="table")
    assert warehouse.table("s", "orders").config.constraints.length_of("code") == 4
    writer(warehouse, {"code": 2}).replace(ROWS.set_column(2, "code", pa.array(["ab"])), existing="table")
    assert warehouse.table("s", "orders").config.constraints.length_of("code") == 2
    writer(warehouse, {"code": None}).replace(longer, existing="table")
    assert warehouse.table("s", "orders").config.constraints.length_of("code") is None


def test_a_write_that_fails_leaves_the_lengths_that_it_would_have_made_shorter(warehouse: Warehouse) -> None:
    writer(warehouse, {"code": 3}).replace(ROWS, existing=None)
    with pytest.raises(ConstraintError):
        writer(warehouse, {"code": 2}).replace(ROWS.set_column(2, "code", pa.array(["abcd"])), existing="table")
    assert warehouse.table("s", "orders").config.constraints.length_of("code") == 3


def test_a_savepoint_whose_name_begins_as_those_of_protected_runs_is_kept_as_any_other(warehouse: Warehouse) -> None:
    writer(warehouse, unique_key="id").create(ROWS)
    warehouse.table("s", "orders").savepoint(name="dbt_before_migration")
    anew = writer(warehouse, unique_key="code")
    with pytest.raises(DbtDatabaseError, match="its savepoints would be lost: dbt_before_migration"):
        anew.replace(ROWS, existing="table")
    table = warehouse.table("s", "orders")
    table.delete_savepoint("dbt_before_migration")
    table.savepoint(name="dbt_01234567-89ab-cdef-0123-456789abcdef")
    anew.replace(ROWS, existing="table")
    assert warehouse.table("s", "orders").savepoints() == []
