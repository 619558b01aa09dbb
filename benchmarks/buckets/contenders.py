"""Tables in a bucket as each contender keeps them. What they are made of is imported in their own processes only.

A table has `partitions` partitions of ten rows, one file each; rows are made by `rows(numbers, partitions, value)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

PER_PARTITION = 10
Options = Mapping[str, str]
"""`endpoint`, `region`, `access_key_id`, `secret_access_key`."""


class Contender(Protocol):
    def start(self, *, options: Options, jars: list[str]) -> str:
        """Get ready; returns the version to print."""

    def make(self, *, place: str, partitions: int) -> None:
        """The table at `place` (`s3://bucket/path`)."""

    def plan(self, *, place: str) -> int:
        """Open the table and find the files of its newest state; how many."""

    def read(self, *, place: str) -> int:
        """Open the table and read it whole; the sum of `n`."""

    def upsert(self, *, place: str, value: int, partitions: int) -> None:
        """Open the table and give the ten rows of one partition a new `n`."""


def rows(numbers: range, partitions: int, value: int) -> dict[str, list[Any]]:
    return {
        "id": [f"k{number:05d}" for number in numbers],
        "part": [f"p{number % partitions:04d}" for number in numbers],
        "ts": [value] * len(numbers),
        "n": [value] * len(numbers),
    }


def all_rows(partitions: int) -> dict[str, list[Any]]:
    return rows(range(PER_PARTITION * partitions), partitions, 0)


def ten_rows(partitions: int, value: int) -> dict[str, list[Any]]:
    return rows(range(0, PER_PARTITION * partitions, partitions), partitions, value)


class Ours:
    """lakehouse_engine's Python API, without Spark."""

    table_type = "cow"

    def start(self, *, options: Options, jars: list[str]) -> str:
        from importlib.metadata import version

        self._options = {**options, "allow_http": "true"}
        return version("dbt-lakehouse")

    def make(self, *, place: str, partitions: int) -> None:
        import pyarrow as pa

        from lakehouse_engine import Lakehouse

        lake, made = Lakehouse(place, storage_options=self._options), pa.table(all_rows(partitions))
        lake.create_table(
            "s.t", schema=made.schema, record_key=["id"], ordering_fields=["ts"], partition_by=["part"], table_type=self.table_type
        ).bulk_insert(made)

    def plan(self, *, place: str) -> int:
        return len(list(self._opened(place).state.view.latest_slices()))

    def read(self, *, place: str) -> int:
        return int(sum(self._opened(place).to_arrow()["n"].to_pylist()))

    def upsert(self, *, place: str, value: int, partitions: int) -> None:
        import pyarrow as pa

        self._opened(place).upsert(pa.table(ten_rows(partitions, value)))

    def _opened(self, place: str) -> Any:
        from lakehouse_engine import Lakehouse

        return Lakehouse(place, storage_options=self._options).table("s.t")


class OursMor(Ours):
    table_type = "mor"


class DeltaRs:
    def start(self, *, options: Options, jars: list[str]) -> str:
        import deltalake

        self._options = {**{f"AWS_{name.upper()}": value for name, value in options.items()}, "AWS_ALLOW_HTTP": "true"}
        return str(deltalake.__version__)

    def make(self, *, place: str, partitions: int) -> None:
        import pyarrow as pa
        from deltalake import write_deltalake

        write_deltalake(place, pa.table(all_rows(partitions)), partition_by=["part"], storage_options=self._options)

    def plan(self, *, place: str) -> int:
        return len(self._opened(place).file_uris())

    def read(self, *, place: str) -> int:
        import pyarrow as pa
        from deltalake import QueryBuilder

        found = QueryBuilder().register("t", self._opened(place)).execute("select n from t").read_all()
        return int(sum(pa.table(found)["n"].to_pylist()))

    def upsert(self, *, place: str, value: int, partitions: int) -> None:
        import pyarrow as pa

        changed = pa.table(ten_rows(partitions, value))
        # The partition is named, as one must: delta-rs would read all of them otherwise.
        same = f"t.id = u.id and t.part = u.part and t.part = '{changed['part'][0].as_py()}'"
        merge = self._opened(place).merge(changed, predicate=same, source_alias="u", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def _opened(self, place: str) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(place, storage_options=self._options)


class Hudi:
    """Apache Hudi on Spark over S3A, in a warm session, with its defaults."""

    table_type = "COPY_ON_WRITE"

    def start(self, *, options: Options, jars: list[str]) -> str:
        from pyspark.sql import SparkSession

        told = {
            "endpoint": options["endpoint"],
            "endpoint.region": options["region"],
            "access.key": options["access_key_id"],
            "secret.key": options["secret_access_key"],
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "directory.marker.retention": "keep",
        }
        settings = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            "spark.jars": ",".join(jars),
            "spark.log.level": "ERROR",
            **{f"spark.hadoop.fs.s3a.{key}": value for key, value in told.items()},
        }
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        self._spark = builder.getOrCreate()
        return str(self._spark.version)

    def make(self, *, place: str, partitions: int) -> None:
        self._write(place, all_rows(partitions), "bulk_insert", "overwrite")

    def plan(self, *, place: str) -> int:
        return len(self._frame(place).inputFiles())

    def read(self, *, place: str) -> int:
        return int(sum(row["n"] for row in self._frame(place).collect()))

    def upsert(self, *, place: str, value: int, partitions: int) -> None:
        self._write(place, ten_rows(partitions, value), "upsert", "append")

    def _frame(self, place: str) -> Any:
        return self._spark.read.format("hudi").load(place.replace("s3://", "s3a://"))

    def _write(self, place: str, made: dict[str, list[Any]], operation: str, mode: str) -> None:
        frame = self._spark.createDataFrame(list(zip(*made.values(), strict=True)), list(made)).coalesce(1)
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": operation,
        }
        frame.write.format("hudi").options(**options).mode(mode).save(place.replace("s3://", "s3a://"))


class HudiMor(Hudi):
    table_type = "MERGE_ON_READ"


CONTENDERS: dict[str, tuple[type[Contender], str]] = {
    "lakehouse_engine, copy-on-write": (Ours, "main"),
    "lakehouse_engine, merge-on-read": (OursMor, "main"),
    "delta-rs": (DeltaRs, "main"),
    "Hudi 1.2 on Spark 3.5, copy-on-write": (Hudi, "hudi"),
    "Hudi 1.2 on Spark 3.5, merge-on-read": (HudiMor, "hudi"),
}
"""By the title: the class, and its interpreter (`environments.interpreter`)."""
