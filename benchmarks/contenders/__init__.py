"""The contenders: what each is, what it needs, what it cannot do. Their modules are imported only in their own process."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.cells import UPSERTS, Cell
from benchmarks.contenders.base import Contender

_NO_UPSERT = "a plain Parquet folder has no upsert"
_NO_SPARK = "takes Arrow data, no Spark DataFrame"
_NO_ARROW = "takes Spark DataFrames only"
_NO_FEED = "has no change feed unless it is switched on for every write"


@dataclass(frozen=True)
class ContenderSpec:
    """`environment` names an interpreter of `environments.py`; `absent` says why cells are empty by nature.

    `relocatable`: a copied table works under another path. `needs`: the contender whose table this one starts from.
    """

    name: str
    title: str
    module: str
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
        ContenderSpec("ours", "lakehouse_engine", "ours", quick=True),
        ContenderSpec(
            "floor",
            "pyarrow floor (2 processes, our files)",
            "floor",
            absent={cell: "the floor is that of a rewrite" for cell in Cell if cell not in UPSERTS},
            needs="ours",
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
            artifacts=("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",),
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW},
        ),
        ContenderSpec(
            "delta",
            "Delta 4.0 on Spark 4.0",
            "delta_spark",
            environment="spark40",
            artifacts=("io.delta:delta-spark_2.13:4.0.0", "io.delta:delta-storage:4.0.0"),
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, Cell.SCAN_INCREMENTAL: _NO_FEED},
        ),
        ContenderSpec(
            "iceberg",
            "Iceberg 1.10 on Spark 4.0",
            "iceberg_spark",
            environment="spark40",
            artifacts=("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",),
            absent={Cell.BULK_INSERT_ARROW: _NO_ARROW, Cell.SCAN_INCREMENTAL: "incremental reads see appends only"},
            # Iceberg's metadata holds absolute file paths.
            relocatable=False,
        ),
    )
}


def load(name: str) -> Contender:
    """The contender itself; imports what it is made of."""
    module = importlib.import_module(f"benchmarks.contenders.{CONTENDERS[name].module}")
    contender: Contender = module.CONTENDER()
    return contender
