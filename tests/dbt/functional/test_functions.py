"""dbt-tests-adapter: functions, in SQL and Python, scalar and aggregate; and what those of a warehouse promise."""

from __future__ import annotations

import platform
from typing import Any

import pytest
from dbt.tests.util import run_dbt, write_file
from dbt.version import __version__ as dbt_version

if dbt_version < "1.11":
    pytest.skip("dbt-core has functions since 1.11", allow_module_level=True)

from dbt.tests.adapter.functions import files
from dbt.tests.adapter.functions import test_udafs as udafs
from dbt.tests.adapter.functions import test_udfs as udfs

RUNNING = ".".join(platform.python_version_tuple()[:2])


def of_this_python(text: str) -> str:
    """A function runs in the Python that runs dbt, and has to say that one."""
    return text.replace('runtime_version: "3.11"', f'runtime_version: "{RUNNING}"')


class Python:
    """Of the Python that runs, which the suite cannot know."""

    SCRIPT, CONFIG, NAME = files.MY_UDF_PYTHON, files.MY_UDF_PYTHON_YML, "price_for_xlarge"

    @pytest.fixture(scope="class")
    def functions(self):
        return {f"{self.NAME}.py": self.SCRIPT, f"{self.NAME}.yml": of_this_python(self.CONFIG)}


class TestFunction(udfs.UDFsBasic):
    pass


class TestDeterministic(udfs.DeterministicUDF):
    """Spark's word for it is DETERMINISTIC."""

    def check_function_volatility(self, sql):
        assert "DETERMINISTIC" in sql
        assert "NOT DETERMINISTIC" not in sql


class TestStable(udfs.StableUDF):
    """Spark has no word for it: there is a warning, and no word."""

    def check_function_volatility(self, sql):
        assert "DETERMINISTIC" not in sql
        assert "STABLE" not in sql


class TestNonDeterministic(udfs.NonDeterministicUDF):
    """Spark's words for it are NOT DETERMINISTIC."""

    def check_function_volatility(self, sql):
        assert "NOT DETERMINISTIC" in sql


class TestUnsupportedType(udfs.ErrorForUnsupportedType):
    pass


class TestFunctionIsARelation(udfs.CanFindScalarFunctionRelation):
    def test_it_can_be_dropped_as_one(self, project):
        run_dbt(["build"])
        with project.adapter.connection_named("_test"):
            schema = project.adapter.Relation.create(schema=project.test_schema)
            found = project.adapter.list_relations_without_caching(schema)
            assert [(one.identifier, str(one.type)) for one in found] == [("price_for_xlarge", "function")]
            project.adapter.drop_relation(found[0])
            assert project.adapter.list_relations_without_caching(schema) == []


class TestDefaults(udfs.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestPythonFunction(Python, udfs.PythonUDFSupported):
    pass


class TestPythonRuntimeVersionRequired(udfs.PythonUDFRuntimeVersionRequired):
    pass


class TestPythonEntryPointRequired(udfs.PythonUDFEntryPointRequired):
    pass


class TestPythonDefaults(Python, udfs.PythonUDFDefaultArgSupport):
    CONFIG = files.MY_UDF_PYTHON_WITH_DEFAULT_ARG_YML
    expect_default_arg_support = True


class TestPythonVolatility(Python, udfs.PythonUDFVolatilitySupport):
    """Spark's words for it are NOT DETERMINISTIC."""

    def check_function_volatility(self, sql):
        assert "NOT DETERMINISTIC" in sql


class TestPythonPackages(Python, udfs.PythonUDFWithPackagesSupported):
    SCRIPT, CONFIG, NAME = files.MY_UDF_PYTHON_WITH_NUMPY, files.MY_UDF_PYTHON_WITH_PACKAGES_YML, "sqrt_input"


class TestAggregate(udafs.BasicSQLUDAF):
    pass


class TestPythonAggregate(Python, udafs.BasicPythonUDAF):
    SCRIPT, CONFIG, NAME = files.SUM_SQUARED_UDAF_PYTHON, files.SUM_SQUARED_UDAF_PYTHON_YML, "sum_squared"


class TestPythonAggregateDefaults(Python, udafs.PythonUDAFDefaultArgSupport):
    SCRIPT, CONFIG, NAME = files.SUM_SQUARED_UDAF_PYTHON, files.SUM_SQUARED_UDAF_PYTHON_WITH_DEFAULT_ARG_YML, "sum_squared"
    expect_default_arg_support = True


TWICE = "functions:\n  - name: twice\n    arguments: [{name: x, data_type: bigint}]\n    returns: {data_type: bigint}\n"


class TestFunctionsInModels:
    @pytest.fixture(scope="class")
    def functions(self):
        return {"twice.sql": "x * 2", "twice.yml": TWICE}

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "rows.sql": "{{ config(materialized='table') }} select id from values (1), (2) as t(id)",
            "stored.sql": "{{ config(materialized='view') }} select id, {{ function('twice') }}(id) as v from {{ ref('rows') }}",
            "built.sql": "{{ config(materialized='table') }} select max({{ function('twice') }}(v + {{ function('twice') }}(id))) as v "
            "from {{ ref('stored') }}",
        }

    def value(self, project: Any, sql: str) -> Any:
        return project.run_sql(sql.format(schema=project.test_schema), fetch="one")[0]

    def test_views_keep_to_the_function_and_tables_to_their_rows(self, project):
        run_dbt(["build"])
        assert self.value(project, "select sum(v) from {schema}.stored") == 6
        assert self.value(project, "select v from {schema}.built") == 16
        write_file("x * 10", project.project_root, "functions", "twice.sql")
        run_dbt(["build", "--select", "twice"])
        assert self.value(project, "select sum(v) from {schema}.stored") == 30
        assert self.value(project, "select v from {schema}.built") == 16
        assert self.value(project, "select {schema}.TWICE(4)") == 40

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            ("(select max(id) from {{ target.schema }}.rows) + x", "join the table where it is called"),
            ("no_such_function(x)", "no_such_function"),
        ],
    )
    def test_a_body_that_cannot_be_is_refused_and_the_function_stays(self, project, body, message):
        run_dbt(["build", "--select", "rows"])
        before = self.value(project, "select {schema}.twice(1)")
        write_file(body, project.project_root, "functions", "twice.sql")
        result = run_dbt(["build", "--select", "twice"], expect_pass=False).results[0]
        assert message in str(result.message)
        assert self.value(project, "select {schema}.twice(1)") == before
