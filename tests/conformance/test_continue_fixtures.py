"""Every copy-on-write table that Hudi wrote in version 6, continued by us: updated, deleted from and inserted into.

What must be there afterwards is made of Hudi's own reading of the table and plain dicts. We read it, and so does hudi-rs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehouse_engine.errors import CommitConflictError, LakehouseError, OptionError, UnsupportedTableError
from lakehouse_engine.model.instant import Action
from lakehouse_engine.table import HoodieTable
from lakehouse_engine.timeline import clock
from lakehouse_engine.view.plans import clustering_groups
from tests.conformance.test_metadata_check import forget_the_newest_commit
from tests.support.fixtures import (
    EVERY_VERSION,
    expected_readings,
    fixtures_root,
    rs_fixtures,
    spark_fixtures,
    unpack_rs_fixture,
    unpack_spark_fixture,
)
from tests.support.readers import META_COLUMNS, assert_same_rows, read_with_hudi_rs, user_columns

pytestmark = pytest.mark.skipif(fixtures_root() is None, reason="the tables written by Hudi are not here (LAKEHOUSE_FIXTURES)")

SPARK = spark_fixtures(EVERY_VERSION, "cow")
RS = [name for name in rs_fixtures("cow") if "__v6_" in name]

CDC = "a rewritten file of a table with change data capture needs a change file"
REFUSED: dict[str, tuple[type[LakehouseError], str]] = {
    "v6-0.15.0/cow_bootstrap_metadata_only": (UnsupportedTableError, "bootstrapped with METADATA_ONLY"),
    "v9-1.2.0/cow_bootstrap_metadata_only": (UnsupportedTableError, "bootstrapped with METADATA_ONLY"),
    "v6-0.15.0/cow_schema_on_read": (UnsupportedTableError, "schema-on-read history"),
    "v6-0.15.0/cow_keygen_custom": (UnsupportedTableError, "does not store which of the fields"),
    "v6-0.15.0/cow_keygen_timestamp_millis": (OptionError, "hoodie.keygen.timebased.timestamp.type"),
    "v6-0.15.0/cow_keygen_timestamp_unix": (OptionError, "hoodie.keygen.timebased.timestamp.type"),
    "v9-1.2.0/cow_keygen_custom": (OptionError, "hoodie.keygen.timebased.output.dateformat"),
    "v6-0.15.0/cow_bucket": (OptionError, "look like those of Hudi's bucket index"),
    "v6-0.15.0/cow_bucket_two_keys": (OptionError, "look like those of Hudi's bucket index"),
}
"""Tables that cannot be written, or not without options, with the error and a word of its reason."""

_TYPE, _FORMAT = "hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.output.dateformat"
NOT_STORED: dict[str, dict[str, str]] = {
    "v6-0.15.0/cow_keygen_custom": {
        "hoodie.datasource.write.partitionpath.field": "region:SIMPLE,at:TIMESTAMP",
        _TYPE: "UNIX_TIMESTAMP",
        _FORMAT: "yyyyMMdd",
    },
    "v6-0.15.0/cow_keygen_timestamp_millis": {_TYPE: "EPOCHMILLISECONDS"},
    "v6-0.15.0/cow_keygen_timestamp_unix": {_TYPE: "UNIX_TIMESTAMP"},
    "v9-1.2.0/cow_keygen_custom": {_TYPE: "UNIX_TIMESTAMP", _FORMAT: "yyyyMMdd"},
    "v6-0.15.0/cow_bucket": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"},
    "v6-0.15.0/cow_bucket_two_keys": {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "8",
        "hoodie.bucket.index.hash.field": "b",
    },
}
"""What Hudi does not store of a key generator or an index, and a write has to say."""

NOT_READ_BY_HUDI_RS = {
    "v9-1.2.0/cow_keygen_custom": "it takes `region:SIMPLE` for a column's name",
    "v9-1.2.0/cow_timestamp_ntz": "the type is not implemented in it",
}

CDC_TABLES = [name for name in SPARK if "cow_cdc_" in name]
KEYLESS = [name for name in SPARK if name.endswith("cow_keyless")]
PENDING_CLUSTERING = [name for name in SPARK if name.endswith("cow_clustering_pending")]
CONTINUED = [name for name in [*SPARK, *RS] if name in NOT_STORED or name not in {*REFUSED, *CDC_TABLES, *KEYLESS, *PENDING_CLUSTERING}]


def unpack(name: str, folder: Path) -> Path:
    return unpack_spark_fixture(name, folder) if "/" in name else unpack_rs_fixture(name, folder)


def hudis_rows(name: str, path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """What Hudi reads from the table (hudi-rs for its own set, and where Hudi fails), user columns only."""
    table = None
    if "/" in name:
        folder, manifest = expected_readings(name)
        if "error" not in manifest["snapshot"]:
            table = pq.read_table(folder / "snapshot.parquet")
    if table is None or (_differs_by_path(name) and name not in NOT_READ_BY_HUDI_RS):
        table = read_with_hudi_rs(path)
    return user_columns(table).select(schema.names).to_pylist()


def _differs_by_path(name: str) -> bool:
    """Tables of which Hudi reads a partition column from the path, decoded or empty made null."""
    return name.endswith(("cow_partition_encoded", "cow_partition_plain")) or "cow_keygen_timestamp" in name or "cow_keygen_custom" in name


@pytest.fixture(autouse=True)
def _later_than_the_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are newer than the clock of some machines."""
    monkeypatch.setattr(clock, "_TOLERANCE", clock.timedelta(days=100_000))


class Continued:
    """A table, and the rows that it must have, by key and partition."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.path = name, unpack(name, folder)
        self.table = HoodieTable.open(str(self.path), options=NOT_STORED.get(name))
        self.schema = self.table.schema
        config = self.table.config
        self.identity = [*config.record_key_fields, *(field for field in config.partition_fields if field not in config.record_key_fields)]
        self.ordering = config.ordering_fields
        self.partial = config.payload_class == "PartialUpdateAvroPayload"
        self.rows = {self.key(row): row for row in hudis_rows(name, self.path, self.schema)}
        # A bootstrap of Hudi 0.15 stores bytes of the heap as partition values of its rows; those rows can only be carried along.
        self.samples = [row for row in self.rows.values() if all(str(value).isprintable() for value in self.key(row))]

    def key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[field] for field in self.identity)

    def arrow(self, rows: list[dict[str, Any]], names: list[str] | None = None) -> pa.Table:
        schema = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)

    def changed(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with every other column taken from another row, and the highest ordering value there is."""
        donor = list(self.rows.values())[-1]
        fixed = {*self.identity, *self.ordering}
        new = {name: row[name] if name in fixed else donor[name] for name in row}
        return {**new, **self.newest()}

    def newest(self) -> dict[str, Any]:
        return {name: max(row[name] for row in self.rows.values() if row[name] is not None) for name in self.ordering}

    def fresh(self, number: int) -> dict[str, Any]:
        """A row of a key that is not there, in the partition of a row that is."""
        row = dict(self.samples[number % len(self.samples)])
        name = self.table.config.record_key_fields[0]
        kind = self.schema.field(name).type
        row[name] = f"new{number}" if pa.types.is_string(kind) else 900_000 + number
        return {**row, **self.newest()}

    def upsert(self, rows: list[dict[str, Any]]) -> None:
        self.table.upsert(self.arrow(rows))
        for row in rows:
            self.rows[self.key(row)] = row

    def insert(self, rows: list[dict[str, Any]]) -> None:
        self.table.insert(self.arrow(rows))
        for row in rows:
            self.rows[self.key(row)] = row

    def delete(self, rows: list[dict[str, Any]]) -> None:
        self.table.delete(self.arrow(rows, self.identity))
        for row in rows:
            del self.rows[self.key(row)]

    def check(self) -> None:
        expected = self.arrow(list(self.rows.values()))
        assert_same_rows(self.table.to_arrow(), expected)
        if self.name not in NOT_READ_BY_HUDI_RS:
            assert_same_rows(user_columns(read_with_hudi_rs(self.path)).select(self.schema.names), expected)


@pytest.mark.parametrize("name", CONTINUED)
def test_a_table_of_hudi_goes_on_with_our_writes(name: str, tmp_path: Path) -> None:
    one = Continued(name, tmp_path)
    if not one.rows:
        row = {field.name: None for field in one.schema}
        one.insert([{**row, **dict.fromkeys(one.identity, number)} for number in (1, 2, 3, 4)])
        one.check()
        one.samples = list(one.rows.values())
    before, partitions = one.table.to_arrow(meta_columns=True), one.table.config.metadata_partitions
    newest = one.table.timeline.completed().writes().last()
    assert newest is not None
    rows = one.samples
    one.upsert([one.changed(rows[0]), one.changed(rows[len(rows) // 2]), one.fresh(1)])
    one.check()
    one.delete([rows[0], one.fresh(1)])
    one.check()
    one.insert([one.fresh(2), one.fresh(3)])
    one.check()
    one.upsert([one.changed(one.fresh(2)), one.changed(rows[-1])])
    one.check()
    assert_same_rows(one.table.to_arrow(as_of=newest.requested_time, meta_columns=True), before)
    assert one.table.config.metadata_partitions == partitions
    if one.table.config.populates_meta_fields:
        keys_are_unique_and_alike(one)


def keys_are_unique_and_alike(one: Continued) -> None:
    """Hudi's form of keys and partition paths goes on in our rows: one generator makes them all."""
    table = one.table.to_arrow(meta_columns=True)
    pairs = list(zip(table.column("_hoodie_record_key").to_pylist(), table.column("_hoodie_partition_path").to_pylist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    by_commit: dict[bool, set[int]] = {}
    for key, partition in pairs:
        by_commit.setdefault(":" in key, set()).add(partition.count("/"))
    if len(one.table.config.record_key_fields) == 1 and "at" not in one.identity:
        assert len(by_commit) == 1, "two forms of keys in one table"


@pytest.mark.parametrize("name", [name for name in SPARK if name.endswith("cow_crashed")])
@pytest.mark.parametrize("markers", ["direct", "lists", "none"])
def test_the_dead_write_of_hudi_is_rolled_back_first(name: str, markers: str, tmp_path: Path) -> None:
    one = Continued(name, tmp_path)
    dead = next(iter(one.table.timeline.pending().writes()))
    folder = one.path / ".hoodie" / ".temp" / dead.requested_time
    files = [path for path in one.path.rglob(f"*_{dead.requested_time}.parquet") if ".hoodie" not in path.relative_to(one.path).parts]
    assert files, "the fixture's dead write has left no file"
    rewrite_markers(folder, markers, [path.relative_to(one.path).as_posix() for path in files])
    one.delete([next(iter(one.rows.values()))])
    one.check()
    assert not any(path.exists() for path in files)
    assert not folder.exists()
    assert one.table.timeline.find(dead.requested_time) is None
    rollback = [instant for instant in one.table.timeline.completed() if instant.action is Action.ROLLBACK]
    assert rollback
    assert rollback[-1].requested_time > dead.requested_time


def rewrite_markers(folder: Path, form: str, files: list[str]) -> None:
    """Hudi has two forms of markers: a file each, or lists that its timeline server keeps."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    if form == "none":
        if folder.exists():
            folder.rmdir()
        return
    folder.mkdir(parents=True, exist_ok=True)
    if form == "lists":
        (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
        (folder / "MARKERS0").write_text("".join(f"{file}.marker.CREATE\n" for file in files[::2]))
        (folder / "MARKERS3").write_text("".join(f"{file}.marker.MERGE\n" for file in files[1::2]))
        return
    for file in files:
        marker = folder / f"{file}.marker.MERGE"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def test_hudis_own_markers_name_the_files_of_its_dead_write(tmp_path: Path) -> None:
    one = Continued("v6-0.15.0/cow_crashed", tmp_path)
    dead = next(iter(one.table.timeline.pending().writes())).requested_time
    assert list((one.path / ".hoodie" / ".temp" / dead).rglob("*")), "the fixture has its markers"
    one.upsert([one.fresh(1)])
    one.check()
    assert not list(one.path.rglob(f"*_{dead}.parquet*"))


@pytest.mark.parametrize("name", PENDING_CLUSTERING)
def test_a_plan_of_hudi_is_left_alone_or_goes_without_what_is_changed(name: str, tmp_path: Path) -> None:
    one = Continued(name, tmp_path)
    (planned,) = [instant for instant in one.table.timeline.pending() if instant.action is Action.REPLACE_COMMIT]
    rows = list(one.rows.values())
    rejecting = {"hoodie.clustering.updates.strategy": "SparkRejectUpdateStrategy"}
    with pytest.raises(CommitConflictError, match="pending clustering"):
        one.table.upsert(one.arrow([one.changed(rows[0])]), options=rejecting)
    one.check()
    groups = set(clustering_groups(one.table.state, planned))
    one.insert([one.fresh(number) for number in range(5)])
    one.upsert([one.changed(one.fresh(3))])
    one.check()
    assert set(clustering_groups(one.table.state, planned)) == groups
    one.upsert([one.changed(rows[0])])
    one.check()
    left = set(clustering_groups(one.table.state, planned))
    assert left < groups
    done = one.table.cluster("run")
    assert (done.instant, done.files_replaced) == (planned.requested_time, len(left))
    one.check()
    one.upsert([one.changed(row) for row in rows[1:4]])
    one.check()


@pytest.mark.parametrize("name", CDC_TABLES)
def test_inserts_into_a_table_with_change_capture_go_on_and_changes_are_refused(name: str, tmp_path: Path) -> None:
    one = Continued(name, tmp_path)
    row = next(iter(one.rows.values()))
    for write in (lambda: one.table.upsert(one.arrow([one.changed(row)])), lambda: one.table.delete(one.arrow([row], one.identity))):
        with pytest.raises(UnsupportedTableError, match="change data capture"):
            write()
    one.check()
    one.insert([one.fresh(1)])
    one.upsert([one.fresh(2)])
    one.check()


@pytest.mark.parametrize("name", KEYLESS)
def test_a_table_with_generated_keys_takes_inserts_only(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(str(unpack(name, tmp_path)))
    before = table.to_arrow()
    with pytest.raises(LakehouseError, match="generated keys"):
        table.upsert(before)
    table.insert(before)
    table.bulk_insert(before)
    assert_same_rows(table.to_arrow(), pa.concat_tables([before] * 3))
    ours = table.to_arrow(meta_columns=True)
    assert_same_rows(read_with_hudi_rs(table.path), ours)
    keys = ours.column(META_COLUMNS[2]).to_pylist()
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_written_is_refused_by_name_and_left_alone(name: str, tmp_path: Path) -> None:
    kind, reason = REFUSED[name]
    path = unpack(name, tmp_path)
    table = HoodieTable.open(str(path))
    stored = pq.read_table(next(file for file in sorted(path.rglob("*.parquet")) if ".hoodie" not in file.parts))
    batch = user_columns(stored)
    data_files = sorted(file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts)
    before = list(table.timeline)
    with pytest.raises(kind, match=reason):
        table.upsert(batch)
    assert list(table.timeline) == before
    assert sorted(file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts) == data_files


@pytest.mark.parametrize("name", [name for name in spark_fixtures(EVERY_VERSION) if name.endswith(("/cow_metadata", "/mor_metadata"))])
def test_the_drop_of_a_metadata_table_that_lags_is_told_once_and_its_definitions_stay(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = unpack(name, tmp_path)
    forget_the_newest_commit(path)
    definitions = path / ".hoodie" / ".index_defs" / "index.json"
    before = definitions.read_bytes() if definitions.exists() else None
    row = HoodieTable.open(str(path)).to_arrow().slice(0, 1)
    for _ in range(2):
        HoodieTable.open(str(path)).upsert(row)
        assert not (path / ".hoodie" / "metadata").exists()
    properties = HoodieTable.open(str(path)).config.properties
    assert not properties.get("hoodie.table.metadata.partitions")
    assert not properties.get("hoodie.table.metadata.partitions.inflight")
    told = [record for record in caplog.records if "metadata table" in record.message]
    assert [record.levelname for record in told] == ["WARNING"]
    for cost in ("a program that did not keep it up made", "listing directories", "statistics are gone", "metadata rebuild"):
        assert cost in told[0].message
    assert (definitions.read_bytes() if definitions.exists() else None) == before
    assert (before is None) == name.startswith("v6-")
