"""How each contender makes the table, clusters it along a Z-order curve into about so many files, and is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from benchmarks.clustering.data import COLUMNS
from benchmarks.contenders.delta_spark import DeltaSpark
from benchmarks.contenders.hudi_spark import HudiSpark
from benchmarks.contenders.iceberg_spark import IcebergSpark
from benchmarks.session import CORES, SessionSettings, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW_GROUP = 120_000
"""Rows of a row group of the floor, about as ours has them."""


@dataclass(frozen=True)
class Place:
    """A table at `path`; `jars` and `scratch` are for a session of Spark."""

    path: str
    scratch: str
    jars: tuple[str, ...] = ()
    memory: str = "6g"


class Clustered(Protocol):
    """A kind of table, in one process."""

    def __init__(self, place: Place) -> None: ...

    def make(self, source: str, files: int) -> None:
        """A new table of the rows in `source`, of so many small files."""

    def cluster(self, target: int) -> None:
        """Cluster it into files of about `target` bytes."""

    def live(self) -> list[int]:
        """Bytes of each of its data files."""

    def asking(self) -> Asking:
        """What answers queries, in a session of Spark."""


Asking = Callable[[str], tuple[list[int], Any]]
"""Takes a query with {t} for the table; returns its row and the DataFrame."""


def _row(frame: DataFrame) -> list[int]:
    return [int(value or 0) for value in frame.collect()[0]]


class Ours:
    """Through the public Python API. It is made, clustered and looked at without a session; queries are Spark's."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def _table(self) -> Any:
        from lakehouse_engine import HoodieTable

        return HoodieTable.open(f"{self._place.path}/s/t")

    def make(self, source: str, files: int) -> None:
        import pyarrow.parquet as pq

        from lakehouse_engine import Lakehouse

        lake = Lakehouse(self._place.path)
        lake.create_schema("s")
        off = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
        paths = sorted(Path(source).glob("*.parquet"))
        table = lake.create_table("s.t", schema=pq.read_schema(paths[0]), record_key=["id"], properties=off)
        for path in paths:
            table.bulk_insert(pq.read_table(path))

    def cluster(self, target: int) -> None:
        options = {"hoodie.clustering.plan.strategy.target.file.max.bytes": target}
        done = self._table.cluster(order_by=list(COLUMNS), layout="z_order", options=options)
        assert done.state == "completed", done

    def live(self) -> list[int]:
        return [entry.base_file.size for entry in self._table.state.view.latest_slices()]

    def asking(self) -> Asking:
        from lakehouse_engine import Lakehouse

        settings = SessionSettings(self._place.memory, self._place.scratch)
        lake = Lakehouse(self._place.path, spark=start_session(settings, {}))
        return _asking(lambda text: lake.sql(text), "s.t")


class Floor:
    """Files read, sorted by the two columns (there is no Z-order in pyarrow) and written by pyarrow with two threads, nothing else."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def make(self, source: str, files: int) -> None:
        """Its files are those of our table, with Hudi's meta columns."""
        shutil.copytree(source, self._place.path)

    def cluster(self, target: int) -> None:
        import pyarrow as pa
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        pa.set_cpu_count(CORES)
        files = [str(path) for path in Path(self._place.path).rglob("*.parquet")]
        count = max(1, -(-sum(Path(path).stat().st_size for path in files) // target))
        rows = ds.dataset(files, format="parquet").to_table().combine_chunks()
        rows = rows.sort_by([(name, "ascending") for name in COLUMNS])
        step = -(-rows.num_rows // count)

        def write(number: int) -> None:
            part, target_file = rows.slice(number * step, step), f"{self._place.path}/sorted-{number}.parquet"
            pq.write_table(part, target_file, compression="zstd", row_group_size=_ROW_GROUP)

        with ThreadPoolExecutor(CORES) as pool:
            list(pool.map(write, range(count)))
        for path in files:
            Path(path).unlink()

    def live(self) -> list[int]:
        return [path.stat().st_size for path in Path(self._place.path).rglob("*.parquet")]

    def asking(self) -> Asking:
        spark = start_session(SessionSettings(self._place.memory, self._place.scratch), {})
        spark.read.parquet(self._place.path).createOrReplaceTempView("t")
        return _asking(spark.sql, "t")


class _OnSpark:
    """A session that begins with the first use of the table."""

    extra_settings: ClassVar[dict[str, str]] = {}
    name: ClassVar[str]

    def __init__(self, place: Place) -> None:
        self._place = place
        self.spark: SparkSession = start_session(SessionSettings(place.memory, place.scratch, place.jars), self._settings())

    def _settings(self) -> dict[str, str]:
        return dict(self.extra_settings)

    def _rows(self, source: str, files: int) -> DataFrame:
        return self.spark.read.parquet(source).repartition(files)

    def asking(self) -> Asking:
        return _asking(self.spark.sql, self.name)


class Hudi(_OnSpark):
    """Hudi 1.2, with column statistics in its metadata table, by which it skips files."""

    extra_settings = HudiSpark.extra_settings
    name = "clustered"
    _STATS: ClassVar[dict[str, str]] = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}

    def make(self, source: str, files: int) -> None:
        options = {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.bulkinsert.shuffle.parallelism": str(files),
            "hoodie.parquet.compression.codec": "zstd",
            **self._STATS,
        }
        self._rows(source, files).write.format("hudi").options(**options).mode("overwrite").save(self._place.path)

    def cluster(self, target: int) -> None:
        options = {
            "hoodie.clustering.plan.strategy.target.file.max.bytes": target,
            "hoodie.layout.optimize.strategy": "z-order",
            "hoodie.parquet.compression.codec": "zstd",
            **self._STATS,
        }
        said = ",".join(f"{key}={value}" for key, value in options.items())
        named = f"path => '{self._place.path}', op => 'scheduleAndExecute', order => '{','.join(COLUMNS)}', options => '{said}'"
        done = self.spark.sql(f"call run_clustering({named})").collect()
        assert done, "nothing was clustered"
        assert done[0]["state"] == "COMPLETED", done

    def live(self) -> list[int]:
        names = {row[0] for row in self._frame().select("_hoodie_file_name").distinct().collect()}
        return [(Path(self._place.path) / name).stat().st_size for name in names]

    def _frame(self) -> DataFrame:
        options = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        return self.spark.read.format("hudi").options(**options).load(self._place.path)

    def asking(self) -> Asking:
        self._frame().createOrReplaceTempView(self.name)
        return super().asking()


class Delta(_OnSpark):
    extra_settings = DeltaSpark.extra_settings

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"delta.`{self._place.path}`"

    def make(self, source: str, files: int) -> None:
        self._rows(source, files).write.format("delta").save(self._place.path)

    def cluster(self, target: int) -> None:
        for bound in ("minFileSize", "maxFileSize"):
            self.spark.conf.set(f"spark.databricks.delta.optimize.{bound}", str(target))
        self.spark.sql(f"optimize {self.name} zorder by ({', '.join(COLUMNS)})").collect()

    def live(self) -> list[int]:
        from urllib.parse import unquote, urlparse

        files = self.spark.table(self.name).inputFiles()
        return [Path(unquote(urlparse(file).path)).stat().st_size for file in files]


class Iceberg(_OnSpark):
    @property
    def name(self) -> str:  # type: ignore[override]
        return f"lake.{self._short}"

    @property
    def _short(self) -> str:
        return f"`{Path(self._place.path).name}`.t"

    def _settings(self) -> dict[str, str]:
        return {**IcebergSpark.extra_settings, "spark.sql.catalog.lake.warehouse": str(Path(self._place.path).parent)}

    def make(self, source: str, files: int) -> None:
        properties = {"write.parquet.compression-codec": "zstd", "write.distribution-mode": "none"}
        writer = self._rows(source, files).writeTo(self.name).using("iceberg")
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def cluster(self, target: int) -> None:
        order = f"zorder({', '.join(COLUMNS)})"
        options = f"map('rewrite-all', 'true', 'target-file-size-bytes', '{target}')"
        named = f"table => '{self._short}', strategy => 'sort', sort_order => '{order}', options => {options}"
        self.spark.sql(f"call lake.system.rewrite_data_files({named})").collect()

    def live(self) -> list[int]:
        return [int(row[0]) for row in self.spark.sql(f"select file_size_in_bytes from {self.name}.files").collect()]


def _asking(sql: Callable[[str], DataFrame], name: str) -> Asking:
    def ask(text: str) -> tuple[list[int], Any]:
        frame = sql(text.format(t=name))
        return _row(frame), frame

    return ask


KINDS: dict[str, type[Clustered]] = {"ours": Ours, "floor": Floor, "hudi": Hudi, "delta": Delta, "iceberg": Iceberg}
TITLES = {"ours": "ours", "floor": "pyarrow floor", "hudi": "Hudi 1.2", "delta": "Delta 4.0", "iceberg": "Iceberg 1.10"}


@contextmanager
def opened(kind: str, place: Place) -> Iterator[Clustered]:
    """The table of a contender, whose session ends with the block."""
    table = KINDS[kind](place)
    try:
        yield table
    finally:
        if isinstance(table, _OnSpark):
            table.spark.stop()
