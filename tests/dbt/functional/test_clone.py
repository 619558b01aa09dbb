"""`dbt clone`: dbt-tests-adapter's classes, and that what is cloned is a table of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseCloneNotPossible,
    BaseClonePossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)
from dbt.tests.util import run_dbt

from lakehouse_engine import Lakehouse


class TestClonePossible(BaseClonePossible):
    pass


class TestCloneNotPossible(BaseCloneNotPossible):
    pass


class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    pass


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    @pytest.fixture(autouse=True)
    def database(self, project):
        """The base class types the database into its SQL; a warehouse has none, and answers to the name of Spark's own catalog."""
        project.database = "spark_catalog"
        yield
        project.database = None


class TestCloneIsATableOfItsOwn(BaseClonePossible):
    """The tables of production are changed and dropped after they were cloned, and the clones are written to."""

    def test_can_clone_true(self, project, unique_schema, other_schema):
        project.create_test_schema(other_schema)
        self.run_and_save_state(project.project_root, with_snapshot=True)
        lake = Lakehouse(project.adapter.config.credentials.warehouse)
        before = lake.table(f"{unique_schema}.table_model").to_arrow()
        arguments = ["clone", "--state", "state", "--target", "otherschema", "--select", "table_model"]
        (result,) = run_dbt(arguments).results
        assert result.adapter_response["rows_affected"] == before.num_rows
        clone = lake.table(f"{other_schema}.table_model")
        (write,) = clone.timeline.completed().writes()
        told = clone.state.commit_metadata(write).extra_metadata
        assert told["lakehouse.clone.source"] == f"{unique_schema}.table_model"
        run_dbt(["run", "--select", "table_model"])
        lake.drop_table(f"{unique_schema}.table_model")
        assert lake.table(f"{other_schema}.table_model").to_arrow().equals(before)
        files = {path.name for path in Path(clone.path).rglob("*.parquet")}
        assert files
        assert all(write.requested_time in name for name in files)

    def test_clone_no_state(self):
        """As in the class above."""
