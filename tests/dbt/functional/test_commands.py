"""dbt-tests-adapter: debug, show, query comments, docs, unit tests, stored failures, Python models."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebug, BaseDebugProfileVariable
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit, BaseShowLimit, BaseShowSqlHeader
from dbt.tests.adapter.persist_docs.test_persist_docs import BasePersistDocs, BasePersistDocsColumnMissing
from dbt.tests.adapter.python_model import test_spark as pyspark_models
from dbt.tests.adapter.python_model.test_python_model import BasePythonIncrementalTests, BasePythonModelTests
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.adapter.query_comment import test_query_comment as query_comment
from dbt.tests.adapter.store_test_failures_tests import basic as store_failures
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import BaseStoreTestFailures
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import run_dbt


class TestDebug(BaseDebug):
    pass


class TestDebugProfileVariable(BaseDebugProfileVariable):
    pass


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "PARSE_SYNTAX_ERROR"


class TestShowOfStatements:
    """`dbt show` puts a limit behind what it shows: behind a statement it would be what is stored."""

    def test_what_it_changes_is_not_limited(self, project: TestProjInfo) -> None:
        table = f"{project.test_schema}.shown"
        run_dbt(["show", "--inline", f"create table {table} (id bigint, name string) using hudi tblproperties (primaryKey = 'id')"])
        run_dbt(["show", "--limit", "2", "--inline", f"insert into {table} select id, 'new' as name from range(9)"])
        run_dbt(["show", "--limit", "2", "--inline", f"update {table} set name = 'changed' where id < 5"])
        run_dbt(["show", "--limit", "2", "--inline", f"delete from {table} where id < 1"])
        assert project.run_sql(f"select name, count(*) from {table} group by 1 order by 1", fetch="all") == [("changed", 4), ("new", 4)]

    def test_rows_of_queries_are(self, project: TestProjInfo) -> None:
        for text in ("explain select 1 as a", "-- a\nwith a as (select id from range(9)) select * from a"):
            (result,) = run_dbt(["show", "--limit", "1", "--inline", text]).results
            assert len(result.agate_table.rows) == 1, text


class TestQueryComments(query_comment.BaseQueryComments):
    pass


class TestMacroQueryComments(query_comment.BaseMacroQueryComments):
    pass


class TestMacroArgsQueryComments(query_comment.BaseMacroArgsQueryComments):
    pass


class TestMacroInvalidQueryComments(query_comment.BaseMacroInvalidQueryComments):
    pass


class TestNullQueryComments(query_comment.BaseNullQueryComments):
    pass


class TestEmptyQueryComments(query_comment.BaseEmptyQueryComments):
    pass


class TestPersistDocs(BasePersistDocs):
    pass


class TestPersistDocsColumnMissing(BasePersistDocsColumnMissing):
    pass


class TestStoreTestFailures(BaseStoreTestFailures):
    pass


class TestStoreTestFailuresAsInteractions(store_failures.StoreTestFailuresAsInteractions):
    pass


class TestStoreTestFailuresAsProjectLevelOff(store_failures.StoreTestFailuresAsProjectLevelOff):
    pass


class TestStoreTestFailuresAsProjectLevelView(store_failures.StoreTestFailuresAsProjectLevelView):
    pass


class TestStoreTestFailuresAsGeneric(store_failures.StoreTestFailuresAsGeneric):
    pass


class TestStoreTestFailuresAsProjectLevelEphemeral(store_failures.StoreTestFailuresAsProjectLevelEphemeral):
    pass


class TestStoreTestFailuresAsExceptions(store_failures.StoreTestFailuresAsExceptions):
    pass


class TestUnitTestCaseInsensitivity(BaseUnitTestCaseInsensivity):
    pass


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self):
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["date '2020-01-02'", "2020-01-02"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["cast('1' as decimal(10, 2))", "1"],
            ["array('a', 'b')", '\'array("a", "b")\''],
            ["map('a', 1)", "'map(\"a\", 1)'"],
        ]


class TestPythonModel(BasePythonModelTests):
    pass


class TestPythonIncremental(BasePythonIncrementalTests):
    pass


class TestPySpark(BasePySparkTests):
    @pytest.fixture(scope="class")
    def models(self):
        """Without Koalas, which was a package of its own before Spark 3.2."""
        return {
            "pandas_df.py": pyspark_models.PANDAS_MODEL,
            "pyspark_df.py": pyspark_models.PYSPARK_MODEL,
            "pandas_on_spark_df.py": pyspark_models.PANDAS_ON_SPARK_MODEL,
        }

    def test_different_dataframes(self, project):
        """The suite counts the Koalas model, too."""
        assert len(run_dbt(["run"])) == 3

