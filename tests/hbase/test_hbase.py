"""Tables with the HBASE index over a real HBase, beside Hudi 0.15, whose entries they share; the server is killed in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.errors import ExternalIndexError
from lakehouse_engine.index.hbase.client import HBaseClient
from tests.hbase.server import HBaseServer
from tests.interop.client import HudiJudge
from tests.interop.continuation import HudiWriter
from tests.interop.judging import judging

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
Entry = tuple[str, str, str]


@pytest.fixture(scope="module")
def hudi() -> Iterator[HudiJudge]:
    """Hudi dropped this index in 1.1."""
    yield from judging("0.15.0")


def rows(ids: str, part: str, ts: int) -> pa.Table:
    names = ids.split()
    return pa.table({"id": names, "part": [part] * len(names), "ts": [ts] * len(names), "n": [ts] * len(names)}, schema=SCHEMA)


def created(hbase: HBaseServer, folder: Path, name: str, kind: str = "cow", **more: str) -> HoodieTable:
    properties = {
        "hoodie.index.type": "HBASE",
        "hoodie.index.hbase.table": name,
        "lakehouse.index.hbase.thrift.host": "127.0.0.1",
        "lakehouse.index.hbase.thrift.port": str(hbase.thrift_port),
        "hoodie.index.hbase.max.qps.per.region.server": "0",
        "hoodie.parquet.small.file.limit": "0",
        **more,
    }
    return Lakehouse(str(folder)).create_table(
        f"s.{name}", schema=SCHEMA, record_key=["id"], partition_by=["part"], ordering_fields=["ts"], table_type=kind, properties=properties
    )


def entries(hbase: HBaseServer, name: str) -> dict[str, Entry]:
    """Partition path, file id and instant by key, as HBase has them."""
    connection = hbase.connect()
    found = {key.decode(): cells for key, cells in connection.table(name).scan() if not key.startswith(b"\0")}
    connection.close()
    names = (b"_s:partition_path", b"_s:file_name", b"_s:commit_ts")
    return {key: (cells[names[0]].decode(), cells[names[1]].decode(), cells[names[2]].decode()) for key, cells in found.items()}


def check(hbase: HBaseServer, table: HoodieTable, expected: dict[str, tuple[str, int]]) -> None:
    """The rows, by partition and value; and an entry for each, which names its partition and a file group that has the key."""
    table = HoodieTable.open(table.path)
    read = table.to_arrow(meta_columns=True)
    found = sorted(zip(*(read.column(name).to_pylist() for name in ("id", "part", "n")), strict=True))
    assert found == sorted((key, part, n) for key, (part, n) in expected.items())
    kept = entries(hbase, table.config.name)
    assert sorted(kept) == sorted(expected)
    places = (read.column(f"_hoodie_{name}").to_pylist() for name in ("record_key", "partition_path", "file_name"))
    for key, path, file in zip(*places, strict=True):
        assert kept[key][:2] == (path, file.split("_")[0])


def test_the_server_is_killed_in_the_middle_of_a_write(
    hbase: HBaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = created(hbase, tmp_path, "killed")
    first = " ".join(f"k{number:05}" for number in range(2000))
    table.upsert(rows(first, "x", 1))
    change, sent = HBaseClient._change, []

    def kill_at_the_third(client: HBaseClient, what: str, changes: list[object]) -> None:
        sent.append(what)
        if len(sent) == 3:
            hbase.kill()
        change(client, what, changes)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(HBaseClient, "_change", kill_at_the_third)
        with pytest.raises(ExternalIndexError, match=f"did not put entries in the table 'killed'.*127.0.0.1:{hbase.thrift_port}"):
            table.upsert(rows(f"{first} {' '.join(f'new{number}' for number in range(1000))}", "x", 2))
    expected = dict.fromkeys(first.split(), ("x", 1))
    table = HoodieTable.open(table.path)
    assert sorted(table.to_arrow(columns=["id"]).column("id").to_pylist()) == sorted(expected)
    with pytest.raises(ExternalIndexError, match="Nothing was written"):
        table.upsert(rows("new1", "x", 3))
    hbase.start()
    assert len(entries(hbase, "killed")) in range(2000, 3000), "entries of the dead write may be there, which are not believed"
    table.upsert(rows(f"{first} {' '.join(f'new{number}' for number in range(1000))}", "x", 4))
    check(hbase, table, {**dict.fromkeys(first.split(), ("x", 4)), **{f"new{number}": ("x", 4) for number in range(1000)}})


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_and_we_share_the_entries(hbase: HBaseServer, hudi: HudiJudge, tmp_path: Path, kind: str) -> None:
    name = f"shared_{kind}"
    table = created(hbase, tmp_path, name, kind)
    writer = HudiWriter(
        judge=hudi,
        path=Path(table.path),
        index="HBASE",
        options={
            "hoodie.table.name": name,
            "hoodie.datasource.write.table.type": str(table.config.table_type.value),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.index.hbase.table": name,
            "hoodie.index.hbase.zkquorum": "127.0.0.1",
            "hoodie.index.hbase.zkport": str(hbase.zookeeper_port),
            "hoodie.index.hbase.zknode.path": "/hbase",
        },
    )
    expected = dict.fromkeys("abcdef", ("x", 1))
    table.upsert(rows("a b c d e f", "x", 1))
    check(hbase, table, expected)

    before = entries(hbase, name)
    writer.upsert(rows("a g", "x", 2))
    writer.upsert(rows("b", "y", 3))  # stays in its partition, by both
    expected |= {"a": ("x", 2), "g": ("x", 2)}
    after = entries(hbase, name)
    assert {key: after[key] for key in before} == before, "Hudi found our entries"
    assert set(after) == set(expected)
    read = HoodieTable.open(table.path).to_arrow()
    assert sorted(read.column("id").to_pylist()) == sorted(expected)

    table = HoodieTable.open(table.path)
    table.upsert(rows("b", "x", 4))
    expected["b"] = ("x", 4)
    table.upsert(rows("g h", "x", 5))
    expected |= {"g": ("x", 5), "h": ("x", 5)}
    table.delete(rows("c", "x", 6))
    del expected["c"]
    check(hbase, table, expected)

    writer.delete(rows("a", "x", 7))
    writer.upsert(rows("c h", "x", 8))
    del expected["a"]
    expected |= {"c": ("x", 8), "h": ("x", 8)}
    check(hbase, table, expected)

    writer.delete(rows("f", "x", 9))
    properties = Path(table.path) / ".hoodie" / "hoodie.properties"
    kept = properties.read_bytes()
    writer.rollback(writer.instants("commit" if kind == "cow" else "deltacommit")[-1])
    properties.write_bytes(kept)  # which the judge's CREATE TABLE has rewritten
    properties.with_name(".hoodie.properties.crc").unlink(missing_ok=True)
    assert "f" not in entries(hbase, name), "Hudi does not put back what its write removed"
    HoodieTable.open(table.path).upsert(rows("f", "x", 9))
    expected["f"] = ("x", 9)
    check(hbase, table, expected)

    HoodieTable.open(table.path).upsert(rows("a", "z", 9))
    HoodieTable.open(table.path).insert_overwrite(rows("p q", "z", 10))  # a is gone with its partition
    expected |= {"p": ("z", 10), "q": ("z", 10)}
    check(hbase, table, expected)
    HoodieTable.open(table.path).cluster(order_by=["id"])
    check(hbase, table, expected)

    hbase.kill()
    with pytest.raises(ExternalIndexError, match="Nothing was written"):
        HoodieTable.open(table.path).upsert(rows("d", "x", 11))
    hbase.start()
    writer.upsert(rows("d p a", "z", 12))
    expected |= {"p": ("z", 12), "a": ("z", 12)}
    HoodieTable.open(table.path).upsert(rows("d e", "x", 13))
    expected |= {"d": ("x", 13), "e": ("x", 13)}
    check(hbase, table, expected)
    read = writer.read()
    assert sorted(zip(read.column("id").to_pylist(), read.column("n").to_pylist(), strict=True)) == sorted(
        (key, n) for key, (_, n) in expected.items()
    )
