"""Tables whose properties contradict each other or what is stored: read, and never written where nobody would find the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehouse_engine.errors import LakehouseError, PartitionValueError, PropertiesError, UnsupportedTableError
from lakehouse_engine.index import registry
from lakehouse_engine.record.keys.keygen import FieldKeyGenerator
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.write import context
from lakehouse_engine.write.tasks import base_files as tasks
from tests.support.untouched import OPTIONS, files_below, make_table, refused

SCHEMA = pa.schema([("id", pa.int64()), ("code", pa.string()), ("region", pa.string()), ("city", pa.string()), ("v", pa.int64())])
GENERATOR, TYPE = "hoodie.table.keygenerator.class", "hoodie.table.keygenerator.type"
KEYS, PARTITIONS = "hoodie.table.recordkey.fields", "hoodie.table.partition.fields"
HIVE, ENCODE = "hoodie.datasource.write.hive_style_partitioning", "hoodie.datasource.write.partitionpath.urlencode"
META = "hoodie.populate.meta.fields"
OF_HUDI = "org.apache.hudi.keygen."


def rows(*ids: int, v: int = 1) -> pa.Table:
    made = [{"id": n, "code": f"c{n}", "region": f"r {n % 2}", "city": f"t{n % 3}", "v": v} for n in ids]
    return pa.Table.from_pylist(made, schema=SCHEMA)


def changed(path: Path, changes: Mapping[str, str | None]) -> HoodieTable:
    """The table with other properties; without the key that says that it is one of ours."""
    change(path, changes)
    return opened(path)


def opened(path: Path) -> HoodieTable:
    return HoodieTable.open(str(path), options=OPTIONS)


def change(path: Path, changes: Mapping[str, str | None]) -> None:
    file = path / ".hoodie" / "hoodie.properties"
    pairs = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line and not line.startswith("#"))
    pairs = {key: value for key, value in pairs.items() if not key.startswith("lakehouse.")}
    pairs = {key: value for key, value in {**pairs, **changes}.items() if value is not None}
    file.write_text("".join(f"{key}={value}\n" for key, value in pairs.items()))


def stored(path: Path, *, key: tuple[str, ...] = ("id",), by: tuple[str, ...] = ("region",), **spec: Any) -> Path:
    table = make_table(path, SCHEMA, key=key, partition_by=by, **spec)
    table.bulk_insert(rows(*range(6)))
    return path


WRITES: dict[str, Callable[[HoodieTable], Any]] = {
    "upsert": lambda table: table.upsert(rows(1, 2, v=2)),
    "insert": lambda table: table.insert(rows(7)),
    "bulk_insert": lambda table: table.bulk_insert(rows(7)),
    "delete": lambda table: table.delete(rows(1)),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(1)),
    "delete_partitions": lambda table: table.delete_partitions([{"region": "r 1"}]),
}

CONTRADICTIONS: dict[str, tuple[dict[str, Any], dict[str, str | None], str]] = {
    "no partitions by class": ({}, {GENERATOR: f"{OF_HUDI}NonpartitionedKeyGenerator"}, r"partition\.fields=region"),
    "no partitions by type only": ({}, {GENERATOR: None, TYPE: "NON_PARTITION"}, r"type=NON_PARTITION.*partition\.fields=region"),
    "partition fields are missing": ({}, {PARTITIONS: None}, r"the directory 'region=r 0'.*no partition fields"),
    "only a type is left": ({}, {GENERATOR: None, TYPE: "SIMPLE", PARTITIONS: None}, r"the directory 'region=r 0'"),
    "class and type differ": ({}, {TYPE: "COMPLEX"}, r"are two key generators"),
    "one key column too many": ({}, {KEYS: "id,code"}, r"makes keys of one column.*id,code"),
    "one partition column too many": ({}, {PARTITIONS: "region,city"}, r"makes partitions of one column.*region,city"),
    "a column twice": ({"by": ()}, {GENERATOR: f"{OF_HUDI}ComplexKeyGenerator", KEYS: "id,id"}, r"over id,id\) make 'id:0,id:0'"),
    "key column is not there": ({"by": ()}, {KEYS: "uuid"}, r"'uuid', which is no column.*id, code"),
    "partition column is not there": ({}, {PARTITIONS: "area"}, r"'area', which is no column"),
    "another key column": ({"by": ()}, {KEYS: "code"}, r"the record key '0'.*make 'c0'"),
    "no key columns": ({"by": ()}, {KEYS: None}, r"no record key fields.*record key '0'"),
    "one of two key columns": ({"key": ("id", "code"), "by": ()}, {KEYS: "id"}, r"the record key 'id:0,code:c0'.*make '0'"),
    "key columns in another order": ({"key": ("id", "code"), "by": ()}, {KEYS: "code,id"}, r"the record key 'id:0,code:c0'"),
    "complex keys by a simple generator": (
        {"key": ("id", "code"), "by": ("region",)},
        {GENERATOR: f"{OF_HUDI}SimpleKeyGenerator", KEYS: "code"},
        r"the record key 'id:0,code:c0'",
    ),
    "another partition column": ({}, {PARTITIONS: "city"}, r"the directory 'region=r 0'.*make 'city=t0'"),
    "not hive-style": ({}, {HIVE: "false"}, r"the directory 'region=r 0'.*make 'r 0'.*hive_style_partitioning"),
    "hive-style": ({"hive_style": False}, {HIVE: "true"}, r"the directory 'r 0'.*make 'region=r 0'.*hive_style_partitioning"),
    "no meta columns": ({}, {META: "false"}, r"rows with meta columns.*populate\.meta\.fields=false"),
    "partitions where there are none": ({"by": ()}, {PARTITIONS: "region", GENERATOR: f"{OF_HUDI}SimpleKeyGenerator"}, r"the directory ''"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictory_table_is_refused_with_what_to_correct_and_read(name: str, tmp_path: Path) -> None:
    how, changes, says = CONTRADICTIONS[name]
    table = changed(stored(tmp_path / "t", **how), changes)
    for write in ("insert", "bulk_insert") if changes.get(KEYS, "") is None else ("upsert", "bulk_insert", "delete"):
        error = refused(tmp_path, UnsupportedTableError, lambda write=write: WRITES[write](table), says)  # type: ignore[misc]
        assert "correct hoodie." in str(error)
    assert table.to_arrow().sort_by("id").to_pylist() == rows(*range(6)).to_pylist()


@pytest.mark.parametrize("write", WRITES)
def test_every_kind_of_write_is_refused(write: str, tmp_path: Path) -> None:
    table = changed(stored(tmp_path / "t"), {PARTITIONS: None, GENERATOR: f"{OF_HUDI}NonpartitionedKeyGenerator"})
    refused(tmp_path, LakehouseError, lambda: WRITES[write](table))


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_url_encoding_that_is_not_as_stored_is_refused(table_type: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    row = pa.Table.from_pylist([{"id": 1, "region": "a=b"}], SCHEMA)
    make_table(path, SCHEMA, partition_by=["region"], table_type=table_type).upsert(row)
    table = changed(path, {ENCODE: "false"})
    refused(tmp_path, UnsupportedTableError, lambda: table.upsert(rows(1)), r"the directory 'region=a%3Db'.*urlencode")


def test_rows_without_keys_where_the_properties_say_that_they_have_some(tmp_path: Path) -> None:
    path = tmp_path / "t"
    make_table(path, SCHEMA).insert(rows(1).slice(0, 0))
    changed(path, {META: "false"}).insert(rows(1))
    table = changed(path, {META: "true"})
    refused(tmp_path, UnsupportedTableError, lambda: table.upsert(rows(1, v=2)), r"rows without meta columns.*populate\.meta\.fields=true")


def test_base_file_tells_of_a_table_with_logs(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make_table(path, SCHEMA, table_type="mor", properties={"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(rows(1))
    table.upsert(rows(1, v=2))
    opened = changed(path, {KEYS: "code"})
    refused(tmp_path, UnsupportedTableError, lambda: opened.upsert(rows(1)), r"the record key '1'")


def test_row_that_stays_in_the_partition_of_its_first_version_is_no_contradiction(tmp_path: Path) -> None:
    stays = {"hoodie.simple.index.update.partition.path": "false"}
    table = make_table(tmp_path / "t", SCHEMA, partition_by=["region"])
    table.insert(rows(0, 2))
    table.upsert(rows(0).set_column(2, "region", [["r 1"]]), options=stays)
    table.upsert(rows(0, 2, v=3), options=stays)
    assert table.to_arrow().column("v").to_pylist() == [3, 3]


@pytest.fixture
def intruded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HoodieTable:
    """A partitioned table with a commit into its own directory, as an engine made it that did not look."""
    path = stored(tmp_path / "t")
    with monkeypatch.context() as patched:
        patched.setattr(context, "key_generator_for", lambda *given, **more: FieldKeyGenerator(("id",)))
        patched.setattr(tasks, "_nested_with", lambda *given: None)
        patched.setattr(registry, "_narrower", lambda *given: None)
        HoodieTable.open(str(path), options={**OPTIONS, "hoodie.index.type": "SIMPLE"}).upsert(rows(1, v=2))
    assert (path / ".hoodie_partition_metadata").exists()
    return HoodieTable.open(str(path), options=OPTIONS)


def test_commit_that_hid_every_partition_is_rolled_back_and_hides_none_any_more(intruded: HoodieTable) -> None:
    assert intruded.to_arrow().num_rows == 7
    intruded.rollback()
    assert not (Path(intruded.path) / ".hoodie_partition_metadata").exists()
    assert HoodieTable.open(intruded.path).to_arrow().sort_by("id").to_pylist() == rows(*range(6)).to_pylist()
    assert intruded.upsert(rows(1, v=3)).instant is not None


def test_commit_that_hid_every_partition_is_taken_back_by_a_restore(intruded: HoodieTable) -> None:
    first = intruded.timeline.completed().writes().first()
    assert first is not None
    intruded.restore(to=first.requested_time)
    assert not (Path(intruded.path) / ".hoodie_partition_metadata").exists()
    assert HoodieTable.open(intruded.path).to_arrow().sort_by("id").to_pylist() == rows(*range(6)).to_pylist()


@pytest.mark.parametrize(("there", "new"), [("a/b/c", "a"), ("a", "a/b/c"), ("a/b", "a/b/c")])
def test_partition_at_any_depth_of_another_is_refused_and_hides_nothing(there: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    properties = {ENCODE: "false"}
    table = make_table(path, SCHEMA, partition_by=["region"], hive_style=False, properties=properties)
    table.insert(rows(1).set_column(2, "region", [[there]]))
    before = {name for name in files_below(path) if "/.hoodie/" not in name}
    with pytest.raises(PartitionValueError, match="one is inside of the other"):
        table.insert(rows(2).set_column(2, "region", [[new]]))
    assert {name for name in files_below(path) if "/.hoodie/" not in name} == before
    assert table.to_arrow().column("id").to_pylist() == [1]


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("hoodie.table.base.file.format", "ORC", UnsupportedTableError),
        ("hoodie.table.base.file.format", "hfile", UnsupportedTableError),
        ("hoodie.archivelog.folder", "../../elsewhere", PropertiesError),
        ("hoodie.archivelog.folder", "metadata", PropertiesError),
        ("hoodie.table.type", "COPY_ON_READ", PropertiesError),
        ("hoodie.populate.meta.fields", "maybe", PropertiesError),
        ("hoodie.datasource.write.drop.partition.columns", "true", UnsupportedTableError),
    ],
)
def test_property_that_no_write_could_honour_is_refused_by_name(key: str, value: str, error: type[LakehouseError], tmp_path: Path) -> None:
    path = stored(tmp_path / "t")
    change(path, {key: value})
    for write in ("bulk_insert", "upsert"):  # or already when it is opened, as in object stores
        assert key in str(refused(tmp_path, error, lambda write=write: WRITES[write](opened(path))))  # type: ignore[misc]
