"""CALL without Spark: what a call is held against, and what the showing procedures answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import LakehouseError, MissingOptionError, OptionError, SqlError, UnsupportedSqlError
from lakehouse_engine.sql.procedures.arguments import Kind
from lakehouse_engine.sql.procedures.registry import PROCEDURES, Prepared, prepare
from lakehouse_engine.sql.router import route
from lakehouse_engine.sql.statements import Call

HOSTILE = (
    "../../etc",
    "a.b/../../c",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://bucket/key",
    "..",
    ".hoodie",
    "a..b",
    ".a.b",
    "a.b.",
    "a.b.c.d",
    "`a`.`../b`",
    "`a`.`b/c`",
    "a.b; drop table a.b",
    "a.b -- comment",
    "a.b' or '1'='1",
    "a.b\x00",
    "a.b\n",
    "a.\x1b[2J",
    "a.b union select * from c.d",
    "(select 1)",
    "{{ var('x') }}",
    "${spark.app.name}",
    "%s",
    "$(touch hacked)",
    "`touch hacked`",
    "a.b\\..\\c",
    "a." + "b" * 300,
    "a.\u202eb",
    "*.*",
    "a.b?",
    "__import__('os')",
)


def call(text: str) -> Prepared:
    statement = route(text, lambda parts: False)
    assert isinstance(statement, Call)
    return prepare(statement)


@pytest.fixture
def lakehouse(tmp_path: Path) -> Lakehouse:
    return Lakehouse(str(tmp_path / "lake"))


@pytest.fixture(params=["cow"])
def table(lakehouse: Lakehouse, request: pytest.FixtureRequest) -> HoodieTable:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    made = lakehouse.create_table("a.b", schema=schema, record_key=["id"], partition_by=["day"], table_type=request.param)
    made.bulk_insert(pa.table({"id": [1, 2, 3], "day": ["x", "x", "y"]}, schema=schema))
    made.bulk_insert(pa.table({"id": [4], "day": ["y"]}, schema=schema))
    return made


def rows(table: HoodieTable, text: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = call(text).answer(table).to_pylist()
    return found


# what is refused


def test_an_unknown_procedure_names_the_nearest() -> None:
    with pytest.raises(UnsupportedSqlError, match=r"no procedure show_comits; did you mean show_commits\?"):
        call("call show_comits(table => 'a.b')")


def test_a_procedure_like_none_names_them_all() -> None:
    with pytest.raises(UnsupportedSqlError, match=r"there are .*show_commits.*show_timeline"):
        call("call zzz()")


@pytest.mark.parametrize("name", sorted(PROCEDURES))
def test_an_unknown_argument_names_the_nearest(name: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=r"no argument tabel; did you mean table\?"):
        call(f"call {name}(tabel => 'a.b')")


@pytest.mark.parametrize("name", sorted(PROCEDURES))
def test_a_call_without_its_table_is_refused(name: str) -> None:
    given = {argument.name: argument for argument in PROCEDURES[name].signature.arguments}
    assert given["table"].required
    with pytest.raises(MissingOptionError, match="table"):
        call(f"call {name}(table => null)")


@pytest.mark.parametrize("name", sorted(PROCEDURES))
def test_too_many_positions_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="takes at most"):
        call(f"call {name}({', '.join(['null'] * (len(PROCEDURES[name].signature.arguments) + 1))})")


def test_an_argument_given_twice_is_refused() -> None:
    with pytest.raises(UnsupportedSqlError, match="table twice"):
        call("call show_commits('a.b', table => 'a.c')")


def test_an_argument_of_hudi_without_a_use_here_says_what_to_do() -> None:
    with pytest.raises(UnsupportedSqlError, match="filter the rows of the answer"):
        call("call show_timeline(table => 'a.b', filter => \"action = 'commit'\")")


@pytest.mark.parametrize(
    "value", ["0", "-1", "1.5", "'5'", "true", "'1; drop table a.b'", "date '2026-01-01'"]
)
def test_a_count_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(OptionError, match=r"limit => .* is not a whole number above 0"):
        call(f"call show_commits(table => 'a.b', limit => {value})")


@pytest.mark.parametrize("value", ["'yesterday'", "2026", "'2026-01-01'", "true", "'20260101000000000; --'", "'٢٠٢٦٠١٠١٠٠٠٠٠٠'"])
def test_an_instant_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(OptionError, match="is not an instant"):
        call(f"call show_timeline(table => 'a.b', startTime => {value})")


@pytest.mark.parametrize(
    "text",
    [
        "call show_commits(table => concat('a', '.b'))",
        "call show_commits(table => (select 'a.b'))",
        "call show_commits(table => ?)",
        "call show_commits(table => :name)",
        "call show_commits(table => current_user())",
        "call show_commits('a.b'); drop table a.b",
        "call show_commits('a.b') union select 1",
        "call show_commits('a.b') limit 1 + 1",
        "call show_commits('a.b') limit 'x'",
        "call show_commits('a.b',",
        "call show_commits",
        "call identifier('show_commits')(table => 'a.b')",
    ],
)
def test_only_literals_are_values(text: str) -> None:
    with pytest.raises(UnsupportedSqlError):
        call(text)


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_table_name_is_no_table_and_touches_nothing(lakehouse: Lakehouse, tmp_path: Path, payload: str) -> None:
    (tmp_path / "outside").mkdir()
    before = sorted(tmp_path.rglob("*"))
    literal = "'" + payload.replace("\\", "\\\\").replace("'", "\\'") + "'"
    with pytest.raises(LakehouseError):
        lakehouse.table(str(RelationName.of(call(f"call show_commits(table => {literal})").table)))
    assert sorted(tmp_path.rglob("*")) == before


# how calls are written


@pytest.mark.parametrize(
    "text",
    [
        "call show_commits(table => 'a.b', limit => 5)",
        "CALL show_commits('a.b', 5)",
        "call system.show_commits('a.b', limit => 5)",
        "call SHOW_COMMITS(limit => 5, `table` => 'a.b')",
        "call show_commits(table = 'spark_catalog.a.b', limit = 5)",
        "call show_commits(table => \"a.b\", limit => 5);",
        "call show_commits('`a`.`b`', 5) limit 500",
    ],
)
def test_arguments_by_name_and_by_position_mean_the_same(text: str) -> None:
    prepared = call(text)
    assert (prepared.procedure.signature.name, prepared.table) == ("show_commits", ("a", "b"))
    assert prepared.values["limit"] == 5


def test_names_of_arguments_are_found_in_any_case() -> None:
    assert call("call show_timeline(table => 'a.b', STARTTIME => 20260101000000000)").values["startTime"] == "20260101000000000"


def test_what_is_left_out_has_its_default() -> None:
    assert call("call show_commits('a.b')").values == {"table": "a.b", "limit": 10}
    assert call("call show_timeline('a.b', null, '')").values == {"table": "a.b", "limit": 20, "startTime": None, "endTime": None}


def test_every_argument_has_a_kind_and_every_procedure_a_table() -> None:
    for name, procedure in PROCEDURES.items():
        assert procedure.signature.name == name
        assert "table" in procedure.signature.names
        assert all(isinstance(argument.kind, Kind) for argument in procedure.signature.arguments)
        assert not set(procedure.signature.names) & {refused.name for refused in procedure.signature.refused}


# what is shown


def test_show_commits_has_hudis_columns_newest_first(table: HoodieTable) -> None:
    newest, oldest = rows(table, "call show_commits(table => 'a.b')")
    times = [instant.requested_time for instant in table.timeline.completed().writes()]
    assert [oldest["commit_time"], newest["commit_time"]] == times
    assert (oldest["total_files_added"], oldest["total_files_updated"], oldest["total_partitions_written"]) == (2, 0, 2)
    assert (oldest["total_records_written"], oldest["inserts"], oldest["total_errors"], oldest["operation"]) == (3, 3, 0, "BULK_INSERT")
    assert str(newest["state_transition_time"]) >= str(newest["commit_time"])
    stored = sum(path.stat().st_size for path in Path(table.path).rglob("*.parquet"))
    assert int(str(oldest["total_bytes_written"])) + int(str(newest["total_bytes_written"])) == stored


def test_a_limit_of_the_procedure_and_of_the_statement_both_hold(table: HoodieTable) -> None:
    assert len(rows(table, "call show_commits('a.b', 1)")) == 1
    assert len(rows(table, "call show_commits('a.b') limit 1")) == 1
    assert rows(table, "call show_commits('a.b') limit 0") == []


def test_show_timeline_has_the_time_of_every_state(table: HoodieTable) -> None:
    newest, oldest = rows(table, "call show_timeline(table => 'a.b')")
    assert (newest["state"], newest["timeline_type"], newest["rollback_info"]) == ("COMPLETED", "ACTIVE", None)
    assert str(newest["requested_time"]) <= str(newest["inflight_time"]) <= str(newest["completed_time"])
    since = rows(table, f"call show_timeline(table => 'a.b', startTime => '{newest['instant_time']}')")
    until = rows(table, f"call show_timeline(table => 'a.b', endTime => {oldest['instant_time']})")
    assert (since, until) == ([newest], [oldest])


def test_show_table_properties_lists_what_the_table_is_made_with(table: HoodieTable) -> None:
    properties = {str(row["key"]): row["value"] for row in rows(table, "call show_table_properties('a.b')")}
    assert properties == dict(table.config.properties)
    assert properties["hoodie.table.name"] == "b"


def test_an_empty_answer_has_the_columns_all_the_same(table: HoodieTable) -> None:
    answer = call("call show_cleans('a.b')").answer(table)
    assert answer.num_rows == 0
    assert answer.schema.field("total_files_deleted").type == pa.int64()


def test_compactions_are_shown_of_merge_on_read_tables_only(table: HoodieTable) -> None:
    if str(table.config.table_type) == "MERGE_ON_READ":
        assert rows(table, "call show_compaction('a.b')") == []
    else:
        with pytest.raises(LakehouseError, match="no merge-on-read table"):
            rows(table, "call show_compaction('a.b')")


def test_sql_errors_are_one_tree() -> None:
    with pytest.raises(SqlError):
        call("call nothing()")
