"""The examples of the documentation that need Spark, run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse_engine import Lakehouse
from tests.support.connect_server import classic_only
from tests.support.documents import blocks

pytestmark = pytest.mark.spark


@classic_only("the documents' own code makes its session")
def test_the_tour_of_the_readme_runs_to_its_end(root_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`getOrCreate` of the example finds the session of the run."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("hudi")
    namespace: dict[str, object] = {}
    for block in blocks("README.md", "python"):
        block.run(namespace)


def test_the_statements_of_the_sql_page_run_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    lakehouse = Lakehouse(str(tmp_path / "warehouse"), spark=spark)
    for block in blocks("docs/sql.md", "sql"):
        for statement in filter(None, (text.strip() for text in block.code.split(";"))):
            answer = lakehouse.sql(statement)
            if hasattr(answer, "collect"):
                answer.collect()
    rows = lakehouse.sql("select id, status, day from shop.orders order by id").collect()
    assert [tuple(row) for row in rows] == [(2, "sent", "2026-01-02"), (3, "new", "2026-01-03"), (5, "sent", "2026-01-05")]
