"""dbt-tests-adapter: unit tests whose columns are quoted or reserved words, and whose texts are longer than the column."""

from __future__ import annotations

import json

import pytest
from dbt.tests.adapter.column_types import fixtures as column_types
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes
from dbt.tests.adapter.unit_testing import test_quoted_reserved_word_column_names as reserved
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingVarcharFixtureNoTruncation
from dbt.tests.util import run_dbt


class TestUnitTestQuotedReservedWordColumnNames(reserved.BaseUnitTestQuotedReservedWordColumnNames):
    @pytest.fixture(scope="class")
    def models(self):
        """Spark quotes names with backquotes."""
        return {
            "my_model.sql": reserved.my_model_sql,
            "my_upstream_model.sql": reserved.my_upstream_model_with_reserved_word_column_name_sql.replace('"', "`"),
            "unit_tests.yml": reserved.test_my_model_csv_fixtures_yml,
        }


class TestUnitTestVarcharFixture(BaseUnitTestingVarcharFixtureNoTruncation):
    pass


class TestFixturesWithQuotesAndBackslashes:
    """A text is what it says; an array, map or struct is a value of YAML, or an expression, as dbt documents it for Spark."""

    GIVEN = (
        {"id": 4, "t": "nested", "l": ["it's", None], "m": {"a": "b", "c": None}, "s": {"X": "y"}},
        {"id": 1, "t": r"a\d", "l": "array('o\\'s', 'a')", "m": "map('a', 'b')", "s": """named_struct('x', "it's")"""},
        {"id": 2, "t": "ends with \\", "l": 'array("q")', "m": "map()", "s": "null"},
        {"id": 3, "t": "it's\nso", "l": None, "m": None, "s": None},
    )
    EXPECTED = (
        {"id": 4, "t": "nested", "n": 6, "l": ["it's", None], "m": {"a": "b", "c": None}, "x": "y"},
        {"id": 1, "t": r"a\d", "n": 3, "l": """array("o's", 'a')""", "m": "map('a', 'b')", "x": "it's"},
        {"id": 2, "t": "ends with \\", "n": 11, "l": "array('q')", "m": "map()", "x": None},
        {"id": 3, "t": "it's\nso", "n": 7, "l": None, "m": None, "x": None},
    )

    @pytest.fixture(scope="class")
    def models(self):
        given = [{"input": "ref('source')", "rows": list(self.GIVEN)}]
        test = {"name": "fixtures", "model": "tested", "given": given, "expect": {"rows": list(self.EXPECTED)}}
        return {
            "source.sql": "select 1 as id, 'x' as t, array('a') as l, map('a', 'b') as m, named_struct('x', 'y') as s",
            "tested.sql": "select id, t, length(t) as n, l, m, s.x from {{ ref('source') }}",
            "tests.yml": json.dumps({"unit_tests": [test]}),
        }

    def test_they_are_as_they_are_given(self, project):
        run_dbt(["run"])
        assert [str(result.status) for result in run_dbt(["test"]).results] == ["pass"]


class TestColumnTypes(BasePostgresColumnTypes):
    """Postgres' casts and type names in Spark's words."""

    @pytest.fixture(scope="class")
    def models(self):
        types = {
            "smallint": "1",
            "int": "2",
            "bigint": "3",
            "float": "4.0",
            "double": "5.0",
            "decimal(10,2)": "6.0",
            "string": "'7'",
            "varchar(20)": "'8'",
        }
        names = ("smallint_col", "int_col", "bigint_col", "real_col", "double_col", "numeric_col", "text_col", "varchar_col")
        columns = ", ".join(f"cast({value} as {kind}) as {name}" for (kind, value), name in zip(types.items(), names, strict=True))
        return {"model.sql": f"select {columns}", "schema.yml": column_types.schema_yml}
