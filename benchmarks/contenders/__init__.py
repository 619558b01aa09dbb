"""The contenders: what each is, what it needs, what it cannot do. Their modules are imported only in their own process."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.cells import LOGGED, UPSERTS, Cell
from benchmarks.contenders.base import Contender

_NO_UPSERT = "a plain Parquet folder has no upsert"
_NO_SPARK = "takes Arrow data, no Spark DataFrame"
_NO_ARROW = "takes Spark DataFrames only"
_NO_FEED = "has no change feed unless it is switched on for every write"
_NO_LOGS = dict.fromkeys((*LOGGED, Cell.UPSERT_SERIES), "a copy-on-write table has no logs")
_MOR_ONLY = dict.fromkeys((Cell.SCAN_NARROW, Cell.SCAN_WIDE), "as a copy-on-write table before the first upsert")
_NO_BASE_ALONE = {Cell.READ_OPTIMIZED: "has no query of base files alone"}

_HUDI = ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",)
_DELTA = ("io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-storage:4.0.0")
_ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",)


@dataclass(frozen=True)
class ContenderSpec:
    """`environment` names an interpreter of `environments.py`; `absent` says why cells are empty by nature.

    `module` and `factory` name the class. `relocatable`: a copied table works under another path. `needs`: the contender whose table
    this one starts from.
    """

    name: str
    title: str
    module: str
    factory: str = "CONTENDER"
    environment: str = "main"
    artifacts: tuple[str, ...] = ()
    absent: Mapping[Cell, str] = field(default_factory=dict)
    relocatable: bool = True
    needs: str | None = None
    quick: bool = False

    def does(self, cell: Cell) -> bool:
        return cell not in self.absent


CONTENDERS: dict[str, ContenderSpec] = {
    spec.name: spec
    for spec in (
        ContenderSpec("ours", "lakehouse_engine", "ours", absent=_NO_LOGS, quick=True),
        ContenderSpec(
            "ours_arrow",
            "lakehouse_engine, no Spark",
            "ours_arrow",
            absent={cell: "is Spark's" for cell in Cell if cell not in (Cell.BULK_INSERT_ARROW, *UPSERTS, Cell.UPSERT_NOOP)},
            quick=True,
        ),
        ContenderSpec("ours_mor", "lakehouse_engine, merge-on-read", "ours_mor", absent=_MOR_ONLY, quick=True),
        ContenderSpec("ours_mor_bucket", "lakehouse_engine, bucket index", "ours_mor", "OursMorBucket", absent=_MOR_ONLY, quick=True),
        ContenderSpec("ours_mor9", "lakehouse_engine, merge-on-read, version 9", "ours_mor", "OursMor9", absent=_MOR_ONLY),
        ContenderSpec(
            "floor",
            "pyarrow floor (2 processes, our files)",
            "floor",
            absent={cell: "the floor is that of a rewrite" for cell in Cell if cell not in UPSERTS},
            needs="ours",
            quick=True,
        ),
        ContenderSpec(
            "floor_mor",
            "pyarrow floor (2 processes, our files and logs)",
            "floor_mor",
            absent={cell: "the floor is that of a compaction" for cell in Cell if cell is not Cell.COMPACTION},
            needs="ours_mor",
            quick=True,
        ),
        ContenderSpec(
            "spark_parquet",
            "plain Spark Parquet",
            "spark_parquet",
            absent={
                Cell.BULK_INSERT_ARROW: _NO_ARROW,
                Cell.UPSERT_1: _NO_UPSERT,
                Cell.UPSERT_10: _NO_UPSERT,
                Cell.UPSERT_NOOP: _NO_UPSERT,
                Cell.SCAN_INCREMENTAL: "a plain Parquet folder knows no commits",
            },
            quick=True,
        ),
        ContenderSpec(
            "delta_rs",
            "delta-rs",
            "delta_rs",
            absent={Cell.BULK_INSERT: _NO_SPARK, Cell.SCAN_INCREMENTAL: _NO_FEED},
            quick=True,
        ),
        ContenderSpec(
            "hudi",
            "Hudi 1.2.0 on Spark 3.5",
            "hudi_spark",
            environment="hudi",
            artifacts=_HUDI,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW},
        ),
        ContenderSpec(
            "hudi_mor",
            "Hudi 1.2.0, merge-on-read",
            "hudi_mor",
            environment="hudi",
            artifacts=_HUDI,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, **_MOR_ONLY},
        ),
        ContenderSpec(
            "hudi_mor_bucket",
            "Hudi 1.2.0, bucket index",
            "hudi_mor",
            "HudiMorBucket",
            environment="hudi",
            artifacts=_HUDI,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, **_MOR_ONLY},
        ),
        *(
            ContenderSpec(name, f"Hudi 1.2.0, ten files, {kind}", "hudi_restore", factory, "hudi", _HUDI)
            for name, kind, factory in (
                ("hudi_ten_files", "copy-on-write", "HudiTenFiles"),
                ("hudi_mor_ten_files", "merge-on-read", "HudiMorTenFiles"),
            )
        ),
        ContenderSpec(
            "delta",
            "Delta 4.0 on Spark 4.0",
            "delta_spark",
            environment="spark40",
            artifacts=_DELTA,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, Cell.SCAN_INCREMENTAL: _NO_FEED},
        ),
        ContenderSpec(
            "delta_dv",
            "Delta 4.0, deletion vectors",
            "delta_dv",
            environment="spark40",
            artifacts=_DELTA,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, **_MOR_ONLY, **_NO_BASE_ALONE},
        ),
        ContenderSpec(
            "iceberg",
            "Iceberg 1.10 on Spark 4.0",
            "iceberg_spark",
            environment="spark40",
            artifacts=_ICEBERG,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, Cell.SCAN_INCREMENTAL: "incremental reads see appends only"},
            # Iceberg's metadata holds absolute file paths.
            relocatable=False,
        ),
        ContenderSpec(
            "iceberg_mor",
            "Iceberg 1.10 v3, merge-on-read",
            "iceberg_mor",
            environment="spark40",
            artifacts=_ICEBERG,
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, **_MOR_ONLY, **_NO_BASE_ALONE},
            relocatable=False,
        ),
    )
}


def load(name: str) -> Contender:
    """The contender itself; imports what it is made of."""
    spec = CONTENDERS[name]
    contender: Contender = getattr(importlib.import_module(f"benchmarks.contenders.{spec.module}"), spec.factory)()
    return contender
