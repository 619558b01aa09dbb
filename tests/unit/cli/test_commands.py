from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lakehouse_engine import Lakehouse
from lakehouse_engine.cli.main import cli
from tests.support.readers import assert_same_rows
from tests.unit.cli.conftest import Warehouse, orders


def test_tables_lists_tables_and_views_with_their_kind(warehouse: Warehouse) -> None:
    assert [(row["name"], row["kind"]) for row in warehouse.json("tables")] == [
        ("analytics.open_orders", "view"),
        ("analytics.orders", "table"),
    ]


def test_tables_of_an_empty_warehouse_is_an_empty_list(tmp_path: Path) -> None:
    assert json.loads(CliRunner().invoke(cli, ["--warehouse", str(tmp_path), "--json", "tables"]).stdout) == []


def test_info_says_keys_newest_commit_and_size(warehouse: Warehouse) -> None:
    facts = warehouse.json("info", "analytics.orders")
    assert facts["record_key"] == ["order_id"]
    assert facts["partition_by"] == ["day"]
    assert facts["latest_instant"] == warehouse.second
    assert facts["index"] == "GLOBAL_SIMPLE: 2 base files, and a record index pays above 500 (lakehouse.index.auto.files)"
    assert facts["metadata_table"] == []
    assert (facts["commits"], facts["partitions"], facts["base_files"]) == (2, 2, 2)
    assert facts["bytes"] == sum(path.stat().st_size for path in warehouse.root.rglob(f"*{warehouse.second}.parquet"))


def test_schema_names_the_role_of_each_column(warehouse: Warehouse) -> None:
    roles = {row["column"]: row["role"] for row in warehouse.json("schema", "analytics.orders")}
    assert roles == {"order_id": "record key", "status": "", "amount": "", "changed_on": "ordering", "tags": "", "day": "partition"}


def test_timeline_is_newest_first_with_counts(warehouse: Warehouse) -> None:
    rows = warehouse.json("timeline", "analytics.orders")
    assert [(row["instant"], row["operation"], row["inserts"], row["updates"]) for row in rows] == [
        (warehouse.second, "UPSERT", 0, 3),
        (warehouse.first, "UPSERT", 30, 0),
    ]
    assert len(warehouse.json("timeline", "analytics.orders", "--limit", "1")) == 1


def test_files_lists_the_newest_slices_with_their_sizes(warehouse: Warehouse) -> None:
    rows = warehouse.json("files", "analytics.orders")
    assert [row["partition"] for row in rows] == ["day=2026-01-01", "day=2026-01-02"]
    for row in rows:
        assert (Path(warehouse.table.path) / row["base_file"]).stat().st_size == row["base_file_bytes"]


def test_read_as_json_holds_every_row(warehouse: Warehouse) -> None:
    rows = warehouse.json("read", "analytics.orders")
    assert len(rows) == 30
    by_key = {row["order_id"]: row for row in rows}
    assert by_key[0]["status"] == "paid"
    assert by_key[29] == {
        "order_id": 29,
        "status": "new",
        "amount": "9.90",
        "changed_on": "2026-01-01T00:00:00+00:00",
        "tags": ["a", None],
        "day": "2026-01-02",
    }


def test_read_of_no_rows_as_json_is_an_empty_list(warehouse: Warehouse) -> None:
    assert warehouse.json("read", "analytics.orders", "--as-of", "2020-01-01") == []


def test_read_as_of_an_earlier_instant_shows_the_rows_of_then(warehouse: Warehouse) -> None:
    rows = warehouse.json("read", "analytics.orders", "--as-of", warehouse.first, "--columns", "status")
    assert rows == [{"status": "new"}] * 30


def test_read_between_two_instants_shows_what_changed(warehouse: Warehouse) -> None:
    rows = warehouse.json("read", "analytics.orders", "--begin", warehouse.first, "--end", warehouse.second, "--columns", "order_id")
    assert sorted(row["order_id"] for row in rows) == [0, 1, 2]
    assert warehouse.json("read", "analytics.orders", "--begin=2020-01-01", "--end", "2020-01-02") == []
    assert warehouse.json("read", "analytics.orders", "--begin=-0") == []


def test_read_with_a_limit_stops_there(warehouse: Warehouse) -> None:
    assert len(warehouse.json("read", "analytics.orders", "--limit", "17")) == 17


def test_read_as_a_table_shows_twenty_rows_and_says_so(warehouse: Warehouse) -> None:
    result = warehouse.run("read", "analytics.orders", "--columns", "order_id,status")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 22
    assert "--limit" in result.stderr


def test_read_escapes_what_would_steer_the_terminal(warehouse: Warehouse) -> None:
    warehouse.table.upsert(orders(range(1), "\x1b[2J"))
    result = warehouse.run("read", "analytics.orders", "--columns", "status", "--limit", "100")
    assert "\x1b" not in result.stdout
    assert r"\x1b[2J" in result.stdout


def test_read_to_a_parquet_file_holds_the_same_rows(warehouse: Warehouse, tmp_path: Path) -> None:
    target = tmp_path / "orders.parquet"
    told = warehouse.json("read", "analytics.orders", "--format", "parquet", "--output", str(target))
    assert told == {"output": str(target), "format": "parquet", "rows": warehouse.table.to_arrow().num_rows}
    assert_same_rows(pq.read_table(target), warehouse.table.to_arrow())
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["orders.parquet"]


def test_read_to_a_csv_file_can_be_read_again(warehouse: Warehouse, tmp_path: Path) -> None:
    target = tmp_path / "orders.csv"
    columns = "order_id,status,day"
    assert warehouse.run("read", "analytics.orders", "--format", "csv", "--columns", columns, "--output", str(target)).exit_code == 0
    options = pcsv.ConvertOptions(column_types={"day": pa.string()})
    assert_same_rows(pcsv.read_csv(target, convert_options=options), warehouse.table.to_arrow(columns=columns.split(",")))


def test_a_table_directory_is_as_good_as_a_name(warehouse: Warehouse, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["--json", "info", warehouse.table.path])
    assert json.loads(result.stdout)["name"] == "orders"


@pytest.mark.parametrize("command", ["info", "schema", "timeline", "files", "read", "verify"])
def test_every_command_prints_text_for_people_too(warehouse: Warehouse, command: str) -> None:
    result = warehouse.run(command, "analytics.orders")
    assert result.exit_code == 0
    assert result.stdout.strip()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["info", "analytics.nothing"], 1, "analytics.nothing is not in the warehouse"),
        (["info", "./nothing"], 1, "TableNotFoundError"),
        (["tables", "--schema", "nothing"], 1, "there is no schema nothing"),
        (["info", "nothing"], 2, "neither schema.table nor a table's directory"),
        (["read", "analytics.orders", "--as-of", "yesterday"], 2, "no point in time"),
        (["read", "analytics.orders", "--columns", "colour"], 2, "no column 'colour'"),
        (["read", "analytics.orders", "--format", "parquet"], 2, "--output"),
        (["read", "analytics.orders", "--format", "csv", "--output", ""], 2, "name of a file"),
        (["read", "analytics.orders", "--begin", "2026", "--as-of", "2026-01-01"], 2, "not as_of"),
        (["read", "analytics.orders", "--format", "csv"], 3, "the column 'tags'"),
        (["read"], 2, "Missing argument 'TABLE'"),
        (["explode"], 2, "No such command"),
    ],
)
def test_an_error_is_text_on_standard_error_and_an_exit_code(warehouse: Warehouse, arguments: list[str], code: int, says: str) -> None:
    result = warehouse.run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr


def test_an_error_of_the_engine_is_one_line(warehouse: Warehouse) -> None:
    assert len(warehouse.run("info", "analytics.nothing").stderr.splitlines()) == 1


def test_an_error_is_json_when_json_was_asked_for(warehouse: Warehouse) -> None:
    result = warehouse.run("info", "analytics.nothing", "--json")
    error = json.loads(result.stderr)
    assert (error["error"], error["exit_code"], result.exit_code) == ("TableNotFoundError", 1, 1)


def test_a_warehouse_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["--warehouse", str(tmp_path / "nothing"), "tables"])
    assert result.exit_code == 2
    assert "no warehouse directory" in result.stderr


def test_read_where_has_the_rows_of_the_condition(warehouse: Warehouse) -> None:
    every = warehouse.json("read", "analytics.orders")
    found = warehouse.json("read", "analytics.orders", "--where", "day = '2026-01-01' and order_id >= 2")
    assert found == [row for row in every if row["day"] == "2026-01-01" and row["order_id"] >= 2]
    assert 0 < len(found) < len(every)


def test_files_where_says_what_a_reading_skips_and_why(warehouse: Warehouse) -> None:
    where = "day = '2026-01-01' and order_id > 1000"
    rows = warehouse.json("files", "analytics.orders", "--where", where)
    assert {row["partition"]: row["skipped"] for row in rows} == {"day=2026-01-01": "statistics", "day=2026-01-02": "partition"}
    shown = warehouse.run("files", "analytics.orders", "--where", "day = '2026-01-01'")
    assert shown.stderr == "1 of 2 slices are read; 1 skipped by partition, 0 by statistics\n"


@pytest.mark.parametrize("command", ["read", "files"])
def test_a_condition_that_is_not_plain_is_refused(command: str, warehouse: Warehouse) -> None:
    refused = warehouse.run(command, "analytics.orders", "--where", "day = '2026-01-01' or order_id = 1")
    assert refused.exit_code == 3
    assert "is not understood" in refused.stderr


@pytest.mark.parametrize(("command", "least"), [("read", 0), ("timeline", 1)])
def test_a_limit_that_no_number_of_the_machine_holds_is_wrong_usage(warehouse: Warehouse, command: str, least: int) -> None:
    refused = warehouse.run(command, "analytics.orders", "--limit", str(10**26))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--limit" in refused.stderr
    assert f"{least}<=x" in refused.stderr
    assert len(warehouse.json(command, "analytics.orders", "--limit", str(2**63 - 1))) > 1


def test_read_has_days_and_moments_outside_of_the_years_that_python_knows(tmp_path: Path) -> None:
    early, late = -62_135_596_800_000_001, 253_402_300_800_000_000
    moment, day = pa.timestamp("us", tz="UTC"), pa.date32()
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("moment", moment),
            ("day", day),
            ("inside", pa.struct([("list", pa.list_(moment)), ("map", pa.map_(pa.string(), day))])),
        ]
    )
    table = Lakehouse(str(tmp_path)).create_table("s.t", schema=schema, record_key=["id"])
    moments = pa.array([early, 0, late, None], pa.int64()).cast(moment)
    days = pa.array([-719_163, 0, 2_932_897, None], pa.int32()).cast(day)
    offsets = pa.array([0, 1, 2, 4, 4], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.concat_arrays([moments.slice(0, 3), moments.slice(3)]))
    maps = pa.MapArray.from_arrays(offsets, pa.array(["a", "b", "c", "d"]), days)
    inside = pa.StructArray.from_arrays([lists, maps], ["list", "map"])
    table.bulk_insert(pa.table([pa.array([1, 2, 3, 4]), moments, days, inside], schema=schema))
    rows = json.loads(CliRunner().invoke(cli, ["--warehouse", str(tmp_path), "read", "s.t", "--json"]).stdout)
    assert [(row["moment"], row["day"]) for row in rows] == [
        ("0000-12-31T23:59:59.999999+00:00", "0000-12-31"),
        ("1970-01-01T00:00:00+00:00", "1970-01-01"),
        ("10000-01-01T00:00:00+00:00", "10000-01-01"),
        (None, None),
    ]
    assert rows[0]["inside"] == {"list": ["0000-12-31T23:59:59.999999+00:00"], "map": {"a": "0000-12-31"}}
    assert rows[2]["inside"] == {"list": ["10000-01-01T00:00:00+00:00", None], "map": {"c": "10000-01-01", "d": None}}
    assert "10000-01-01T00:00:00" in CliRunner().invoke(cli, ["--warehouse", str(tmp_path), "read", "s.t"]).stdout
