"""The contents that tables should have, computed by plain Spark SQL from the delivered files: `tests/expected/<table>.sql`.

The statements see `feed_orders` and `feed_lineitem` (all changes up to a batch), `feed_customer` (that batch's extract),
`feed_customer_extracts` (all so far, with `batch`), `tpch_nation`, `tpch_region`, and the results `expected_orders` and
`expected_lineitems`. Nothing of the engine or of dbt is used.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from integration_tests.tests.support import tpch

STATEMENTS = Path(__file__).resolve().parents[1] / "expected"
TABLES = tuple(sorted(path.stem for path in STATEMENTS.glob("*.sql")))


class Expected:
    """Results after `batch` of a feed, each computed once."""

    def __init__(self, spark: SparkSession, feed: tpch.Feed, batch: int) -> None:
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.session.timeZone", "UTC")
        self._known: dict[str, pa.Table] = {}
        for name in ("orders", "lineitem"):
            files = [str(feed.landing / name / f"batch-{number}.parquet") for number in tpch.BATCHES if number <= batch]
            self._view(f"feed_{name}", files)
        extracts = [str(feed.archive / f"{number}.parquet") for number in tpch.BATCHES if number <= batch]
        self._view("feed_customer_extracts", extracts)
        self._view("feed_customer", extracts[-1:])
        for name in ("nation", "region"):
            self._view(f"tpch_{name}", [str(tpch.tables() / f"{name}.parquet")])
        for name in ("orders", "lineitems"):
            frame = self._spark.sql(_statement(name))
            frame.cache().createOrReplaceTempView(f"expected_{name}")

    def table(self, name: str) -> pa.Table:
        if name not in self._known:
            self._known[name] = self._spark.sql(_statement(name)).toArrow()
        return self._known[name]

    def versions(self, snapshot: pa.Table) -> pa.Table:
        """A check snapshot in the form of `customers_snapshot.sql`: versions numbered by time, open or closed."""
        self._spark.createDataFrame(snapshot).createOrReplaceTempView("snapshot")
        return self._spark.sql(
            "select customer_key, name, address, nation_key, phone, account_balance, segment, "
            "row_number() over (partition by customer_key order by dbt_valid_from) as version, dbt_valid_to is null as open from snapshot"
        ).toArrow()

    def _view(self, name: str, files: list[str]) -> None:
        self._spark.read.option("mergeSchema", "true").parquet(*files).createOrReplaceTempView(name)


def _statement(name: str) -> str:
    return (STATEMENTS / f"{name}.sql").read_text()
