"""dbt-tests-adapter: constraints. not_null and check are enforced by a query before the write."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints import test_constraints as constraints
from dbt.tests.util import run_dbt, write_file


def yaml(text: str) -> str:
    return text.replace("data_type: text", "data_type: string").replace('"from"', "`from`")


class ColumnsEqual:
    @pytest.fixture
    def string_type(self):
        return "string"

    @pytest.fixture
    def int_type(self):
        return "int"

    @pytest.fixture
    def data_types(self):
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["cast('2019-01-01' as date)", "date", "date"],
            ["cast('2013-11-03 00:00:00Z' as timestamp)", "timestamp", "timestamp"],
            ["array('a', 'b')", "array<string>", "array<string>"],
            ["cast(1 as decimal(10, 2))", "decimal(10,2)", "decimal(10,2)"],
            ["cast(1 as double)", "double", "double"],
        ]


class TestTableConstraintsColumnsEqual(ColumnsEqual, constraints.BaseTableConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_wrong_order.sql": fixtures.my_model_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_wrong_name_sql,
            "constraints_schema.yml": yaml(fixtures.model_schema_yml),
        }


class TestViewConstraintsColumnsEqual(ColumnsEqual, constraints.BaseViewConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_wrong_order.sql": fixtures.my_model_view_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_view_wrong_name_sql,
            "constraints_schema.yml": yaml(fixtures.model_schema_yml),
        }


class TestIncrementalConstraintsColumnsEqual(ColumnsEqual, constraints.BaseIncrementalConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model_wrong_order.sql": fixtures.my_model_incremental_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_incremental_wrong_name_sql,
            "constraints_schema.yml": yaml(fixtures.model_schema_yml),
        }


class Rollback:
    """The second run has nulls in a not_null column: it fails and the first run's rows stay."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self):
        return ["not_null constraint on column 'id' is violated by 1 row(s)", "nothing was written"]


class TestTableConstraintsRollback(Rollback, constraints.BaseConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self):
        return {"my_model.sql": fixtures.my_model_sql, "constraints_schema.yml": yaml(fixtures.model_schema_yml)}


class TestIncrementalConstraintsRollback(Rollback, constraints.BaseIncrementalConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self):
        return {"my_model.sql": fixtures.my_incremental_model_sql, "constraints_schema.yml": yaml(fixtures.model_schema_yml)}


class SqlHeader:
    def models_of(self, sql: str) -> dict[str, Any]:
        header = "set time zone 'Asia/Kolkata';"
        return {
            "my_model_contract_sql_header.sql": sql.replace("set session time zone 'Asia/Kolkata';", header).replace(
                "current_setting('timezone')", "current_timezone()"
            ),
            "constraints_schema.yml": yaml(fixtures.model_contract_header_schema_yml),
        }


class TestTableContractSqlHeader(SqlHeader, constraints.BaseTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self):
        return self.models_of(fixtures.my_model_contract_sql_header_sql)


class TestIncrementalContractSqlHeader(SqlHeader, constraints.BaseIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self):
        return self.models_of(fixtures.my_model_incremental_contract_sql_header_sql)


class ContractText:
    """There is no DDL: what is kept of a run is the query, and before it what becomes of each constraint."""

    QUERY = """
select id, color, date_day
from (
  -- depends_on: <foreign_key_model_identifier>
  select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
-- refused before the commit: rows against the not_null constraint on column 'id'
-- refused before the commit: rows against the primary_key constraint on column 'id'
-- refused before the commit: rows against the check constraint ((id > 0))
-- refused before the commit: rows against the check constraint (id >= 1)
-- refused before the commit: rows against the primary_key constraint (id)
-- not enforced: foreign_key (id) references <foreign_key_model_identifier> (id)
""" + self.QUERY


class TestTableConstraintsRuntimeDdlEnforcement(ContractText, constraints.BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": yaml(fixtures.model_fk_constraint_schema_yml),
        }


class TestIncrementalConstraintsRuntimeDdlEnforcement(ContractText, constraints.BaseIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_incremental_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": yaml(fixtures.model_fk_constraint_schema_yml),
        }


class TestModelConstraintsRuntimeEnforcement(ContractText, constraints.BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": yaml(fixtures.constrained_model_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
-- refused before the commit: rows against the not_null constraint on column 'id'
-- refused before the commit: rows against the check constraint ((id > 0))
-- refused before the commit: rows against the check constraint (id >= 1)
-- refused before the commit: rows against the primary_key constraint on column 'id'
-- refused before the commit: rows against the primary_key constraint (id)
-- refused before the commit: rows against the unique constraint 'strange_uniqueness_requirement' (color, date_day)
-- not enforced: foreign_key (id) references <foreign_key_model_identifier> (id)
""" + self.QUERY


class TestConstraintQuotedColumn(constraints.BaseConstraintQuotedColumn):
    """There is no DDL: what is kept of a run is the query, and before it what becomes of each constraint."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": yaml(fixtures.model_quoted_column_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self):
        return """
-- refused before the commit: rows against the not_null constraint on column 'id'
-- refused before the commit: rows against the not_null constraint on column 'from'
-- refused before the commit: rows against the check constraint ((`from` = 'blue'))
select id, `from`, date_day
from (
  select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class TestIncrementalForeignKeyConstraint(constraints.BaseIncrementalForeignKeyConstraint):
    pass


class TestLengths:
    """`varchar(n)` of a contract holds for the model's rows, and for whoever else writes the table."""

    YAML = """
models:
  - name: m
    config: {{contract: {{enforced: true}}}}
    columns:
      - {{name: id, data_type: int}}
      - {{name: v, data_type: {kind}}}
"""

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "select 1 as id, 'abc' as v", "m.yml": self.YAML.format(kind="varchar(3)")}

    def put(self, project: Any, value: str, kind: str, config: str) -> None:
        write_file("{{ config(" + config + f") }}}}\nselect 1 as id, '{value}' as v", project.project_root, "models", "m.sql")
        write_file(self.YAML.format(kind=kind), project.project_root, "models", "m.yml")

    @pytest.mark.parametrize("config", ["materialized='table'", "materialized='incremental', unique_key='id', on_schema_change='fail'"])
    def test_longer_text_is_refused_until_the_contract_allows_it(self, project: Any, config: str) -> None:
        def value() -> str:
            return str(project.run_sql(f"select v from {project.test_schema}.m", fetch="one")[0])

        self.put(project, "abc", "varchar(3)", config)
        run_dbt(["run", "--full-refresh"])
        self.put(project, "abcd", "varchar(3)", config)
        failed = run_dbt(["run"], expect_pass=False).results[0].message
        assert "varchar(3) of column 'v'" in str(failed)
        with pytest.raises(Exception, match=r"VARCHAR\(3\)"):
            project.run_sql(f"update {project.test_schema}.m set v = 'abcde'")
        assert value() == "abc"
        self.put(project, "abcd", "varchar(5)", config)
        run_dbt(["run"])
        assert value() == "abcd"
        self.put(project, "abcdefgh", "string", config)
        run_dbt(["run"])
        assert value() == "abcdefgh"


class TestUniqueness:
    """`unique` and `primary_key` hold for the table as it is after the write; a refused run changes nothing, and shows a value."""

    YAML = """
models:
  - name: m
    config: {contract: {enforced: true}}
    constraints: [{type: unique, name: mails, columns: [mail]}]
    columns:
      - {name: id, data_type: int, constraints: [{type: primary_key}, {type: check, expression: id > 0}]}
      - {name: mail, data_type: string}
      - {name: p, data_type: string}
"""
    FIRST = "(1, 'a', 'x'), (2, 'b', 'y'), (3, null, 'y'), (4, null, 'y')"

    @pytest.fixture(scope="class")
    def models(self):
        return {"m.sql": "select 1 as id, 'a' as mail, 'x' as p", "m.yml": self.YAML}

    def run(self, project: Any, config: str, rows: str, *flags: str, passes: bool = True) -> str:
        if "incremental" in config:
            config += ", on_schema_change='fail'"
        text = "{{ config(" + config + ") }}\nselect id, cast(mail as string) as mail, p from values " + rows + " as v(id, mail, p)"
        write_file(text, project.project_root, "models", "m.sql")
        return str(run_dbt(["run", *flags], expect_pass=passes).results[0].message)

    def stored(self, project: Any) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in project.run_sql(f"select id, mail, p from {project.test_schema}.m order by id, p", fetch="all")]

    MERGE = "materialized='incremental', unique_key='id', incremental_strategy='merge'"
    PARTS = "unique_key='id', partition_by=['p'], index='simple'"
    IN_PARTS = "materialized='incremental', incremental_strategy='merge', " + PARTS

    @pytest.mark.parametrize(
        ("config", "good", "bad", "example"),
        [
            ("materialized='table'", "(5, 'a', 'x'), (6, 'c', 'x')", "(5, 'd', 'x'), (6, 'd', 'x')", '{"mail":"d"}'),
            ("materialized='table', " + PARTS, "(5, 'a', 'x')", "(5, 'd', 'x'), (5, 'e', 'y')", '{"id":5}'),
            (MERGE, "(1, 'c', 'x'), (5, 'a', 'x')", "(5, 'b', 'x')", '{"mail":"b"}'),
            (MERGE + ", table_type='mor'", "(1, 'b', 'x'), (2, 'a', 'y')", "(1, 'b', 'x')", '{"mail":"b"}'),
            (IN_PARTS, "(1, 'a', 'x'), (5, 'e', 'z')", "(1, 'e', 'y')", '{"id":1}'),
            (MERGE + ", merge_update_columns=['p']", "(1, 'b', 'z')", "(1, 'q', 'z'), (6, 'a', 'z')", '{"mail":"a"}'),
            (MERGE + ", delete_condition=\"p = 'gone'\"", "(1, 'a', 'gone'), (5, 'a', 'x')", "(5, 'b', 'x')", '{"mail":"b"}'),
            (MERGE + ", ordering_fields='p'", "(1, 'c', 'z')", "(1, 'n', 'a'), (5, 'a', 'x')", '{"mail":"a"}'),
            ("materialized='incremental', incremental_strategy='append'", "(5, 'c', 'x')", "(2, 'e', 'y')", '{"id":2}'),
            ("materialized='incremental', unique_key='id', incremental_strategy='delete+insert'", "(1, 'c', 'x')", "(1, 'b', 'x')", "mail"),
            (
                "materialized='incremental', partition_by=['p'], incremental_strategy='insert_overwrite'",
                "(9, 'b', 'y')",
                "(9, 'a', 'y')",
                '{"mail":"a"}',
            ),
        ],
    )
    def test_a_second_one_is_refused_and_others_are_not(self, project: Any, config: str, good: str, bad: str, example: str) -> None:
        self.run(project, config, self.FIRST, "--full-refresh")
        before = self.stored(project)
        message = self.run(project, config, bad, passes=False)
        assert "is violated by 1 value(s)" in message
        assert example in message
        assert self.stored(project) == before
        self.run(project, config, good)
        assert self.stored(project) != before or good == "(1, 'b', 'z')"

    NEWEST = MERGE + ", ordering_fields='p'"
    PAYLOAD = ", hoodie={'hoodie.datasource.write.payload.class': 'OverwriteWithLatestAvroPayload'}"

    @pytest.mark.parametrize("kind", ["cow", "mor"])
    @pytest.mark.parametrize(
        ("rows", "mails"),
        [
            ("(1, 'b', 'a')", ["a", "b"]),  # the stored row is newer
            ("(1, 'b', 'y'), (1, 'c', 'z')", ["c", "b"]),  # another row of the batch is
            ("(1, 'c', 'z'), (1, 'b', cast(null as string))", ["c", "b"]),
            ("(1, 'b', 'z'), (2, 'c', 'z')", ["b", "c"]),
            ("(1, 'b', 'z'), (2, 'c', 'z'), (2, 'b', 'y')", ["b", "c"]),
        ],
    )
    def test_a_row_that_a_merge_does_not_store_breaks_nothing(self, project: Any, kind: str, rows: str, mails: list[str]) -> None:
        config = self.NEWEST + f", table_type='{kind}'"
        self.run(project, config, "(1, 'a', 'x'), (2, 'b', 'x'), (1, 'b', 'w')", "--full-refresh")
        self.run(project, config, rows)
        assert [mail for _, mail, _ in self.stored(project)] == mails

    @pytest.mark.parametrize(
        ("config", "rows"),
        [
            (NEWEST, "(1, 'b', 'x')"),  # as new as the stored one: it takes its place
            (NEWEST, "(1, 'b', 'z'), (1, 'c', 'y')"),
            (NEWEST, "(1, 'b', 'z'), (1, 'c', 'z')"),  # equals: which one is stored is not said
            (NEWEST, "(1, 'b', 'z'), (2, 'c', 'w')"),  # the row that would make room loses
            (NEWEST + PAYLOAD, "(1, 'b', 'a')"),  # a payload that does not compare with what is stored
        ],
    )
    def test_a_row_that_a_merge_stores_is_refused_whatever_else_comes(self, project: Any, config: str, rows: str) -> None:
        project.run_sql(f"drop table if exists {project.test_schema}.m")
        self.run(project, config, "(1, 'a', 'x'), (2, 'b', 'x')", "--full-refresh")
        before = self.stored(project)
        assert "is violated by 1 value(s)" in self.run(project, config, rows, passes=False)
        assert self.stored(project) == before

    def test_whole_tables_keep_the_newest_row_of_a_record(self, project: Any) -> None:
        config = "materialized='table', unique_key='id', ordering_fields='p'"
        project.run_sql(f"drop table if exists {project.test_schema}.m")
        for flags in (("--full-refresh",), ()):
            self.run(project, config, "(1, 'a', 'x'), (1, 'b', 'w'), (2, 'b', 'x')", *flags)
            assert [mail for _, mail, _ in self.stored(project)] == ["a", "b"]

    @pytest.mark.parametrize("config", ["materialized='table'", MERGE])
    def test_a_key_in_two_partitions_is_one_row_where_the_index_is_global(self, project: Any, config: str) -> None:
        config += ", partition_by=['p']" + ("" if "unique_key" in config else ", unique_key='id'")
        project.run_sql(f"drop table if exists {project.test_schema}.m")
        for flags in ((), ("--full-refresh",)):
            self.run(project, config, "(1, 'a', 'x'), (1, 'b', 'y'), (2, 'c', 'y')", *flags)
            assert self.stored(project) == [(1, "b", "y"), (2, "c", "y")]
        refused = self.run(project, config, "(1, 'a', 'x'), (2, 'a', 'y')", "--full-refresh", passes=False)
        assert '{"mail":"a"}' in refused

    def test_a_row_that_breaks_a_check_is_shown(self, project: Any) -> None:
        message = self.run(project, "materialized='table'", "(-1, null, 'x')", passes=False)
        assert '(id > 0) is violated by 1 row(s), for example {"id":-1,"mail":null,"p":"x"}' in message

    def test_a_materialized_view_with_such_a_constraint_is_refused(self, project: Any) -> None:
        message = self.run(project, "materialized='materialized_view'", "(1, 'a', 'x')", passes=False)
        assert "is not enforced when a materialized view is refreshed" in message
