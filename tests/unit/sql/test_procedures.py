"""CALL without Spark: what a call is held against, and what the showing procedures answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse_engine import HoodieTable, Lakehouse
from lakehouse_engine.catalog.names import RelationName
from lakehouse_engine.errors import (
    CompactionError,
    LakehouseError,
    MissingOptionError,
    OptionError,
    RestoreError,
    SavepointError,
    SqlError,
    UnknownOptionError,
    UnsupportedSqlError,
)
from lakehouse_engine.sql.grammar.statements import Call
from lakehouse_engine.sql.procedures.arguments import Kind
from lakehouse_engine.sql.procedures.registry import INSTEAD, PROCEDURES, Prepared, help_rows, prepare
from lakehouse_engine.sql.router import route
from tests.support.documents import ROOT

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


@pytest.fixture(params=["cow", "mor"])
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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("show_file_status", "not available: CALL show_commits"),
        ("delete_marker", "not available: .*CALL repair_table"),
        ("export_instants", "not available: CALL show_timeline"),
        ("hive_sync", "no other catalog"),
        ("show_metadata_table_files", "not available: .*CREATE INDEX"),
        ("truncate_table", "TRUNCATE TABLE"),
    ],
)
def test_procedures_of_hudi_that_there_are_none_of_say_what_to_use_instead(name: str, said: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=f"CALL {name} is {said}|CALL {name} .*{said}"):
        prepare(Call(name))


def test_help_has_the_arguments_of_all_procedures_or_of_one() -> None:
    assert [name for name, _ in help_rows(Call("help"))] == sorted(PROCEDURES)
    assert help_rows(Call("help", ((None, "DELETE_SAVEPOINT"),))) == [("delete_savepoint", "table, instant_time, dry_run")]
    assert len(help_rows(Call("help", (), 2))) == 2
    with pytest.raises(UnsupportedSqlError, match=r"no procedure run_clan; did you mean run_clean\?"):
        help_rows(Call("help", (("cmd", "run_clan"),)))


def test_every_procedure_is_documented_with_its_arguments_and_none_is_refused_as_missing() -> None:
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    for name, one in PROCEDURES.items():
        [line] = [line for line in lines if f"`{name}`" in line.split("|")[1]]
        assert [argument for argument in one.signature.names if argument != "dry_run" and f"`{argument}`" not in line] == [], name
    assert set(PROCEDURES) & set(INSTEAD) == set()


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
    required = [argument.name for argument in PROCEDURES[name].signature.arguments if argument.required]
    assert "table" in required
    others = "".join(f", {argument} => '20260101000000000'" for argument in required if argument != "table")
    with pytest.raises(MissingOptionError, match="table"):
        call(f"call {name}(table => null{others})")


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


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_table_name_is_no_table_and_touches_nothing(lakehouse: Lakehouse, tmp_path: Path, payload: str) -> None:
    (tmp_path / "outside").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(LakehouseError):
        lakehouse.table(str(RelationName.of(call(f"call show_commits(table => {literal(payload)})").table)))
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
    assert call("call show_timeline('a.b', null, false, '')").values == {
        "table": "a.b",
        "limit": 20,
        "showArchived": False,
        "startTime": None,
        "endTime": None,
    }


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


# what changes a table


def state_of(table: HoodieTable) -> dict[str, bytes]:
    """Every file but locks, with its bytes."""
    root = Path(table.path)
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def content(table: HoodieTable) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def add(table: HoodieTable, *ids: int) -> str:
    written = table.upsert(pa.table({"id": list(ids), "day": ["x"] * len(ids)}, schema=table.schema))
    assert written.instant is not None
    return written.instant


def test_a_savepoint_is_made_shown_gone_back_to_and_deleted(table: HoodieTable) -> None:
    before = content(table)
    newest = table.history()[0].instant
    (made,) = rows(table, "call create_savepoint(table => 'a.b', user => 'ann', comments => 'why', name => 'before')")
    assert (made["create_savepoint_result"], made["savepoint_time"], made["name"]) == (True, newest, "before")
    add(table, 7, 8)
    add(table, 1)
    (shown,) = rows(table, "call show_savepoints('a.b')")
    assert (shown["savepoint_time"], shown["savepointed_by"], shown["comments"], shown["name"]) == (newest, "ann", "why", "before")
    assert shown["files"] == made["files"]
    (back,) = rows(table, f"call rollback_to_savepoint(table => 'a.b', instant_time => '{newest}')")
    assert (back["rollback_savepoint_result"], back["restored_to"], back["instants_rolled_back"]) == (True, newest, 2)
    assert content(table) == before
    (gone,) = rows(table, "call delete_savepoint('a.b', 'before')")
    assert (gone["delete_savepoint_result"], gone["savepoint_time"]) == (True, newest)
    assert rows(table, "call show_savepoints('a.b')") == []


def test_a_savepoint_of_an_older_commit_and_the_newest_one_are_found(table: HoodieTable) -> None:
    newest, oldest = [entry.instant for entry in table.history()]
    rows(table, f"call create_savepoint('a.b', {oldest})")
    rows(table, "call create_savepoint('a.b')")
    assert [row["savepoint_time"] for row in rows(table, "call show_savepoints('a.b')")] == [newest, oldest]
    add(table, 9)
    assert rows(table, "call rollback_to_savepoint('a.b')")[0]["restored_to"] == newest


def test_a_restore_past_a_later_savepoint_needs_cascade(table: HoodieTable) -> None:
    newest, oldest = [entry.instant for entry in table.history()]
    rows(table, "call create_savepoint('a.b')")
    before = state_of(table)
    with pytest.raises(RestoreError):
        rows(table, f"call restore_to_instant(table => 'a.b', instant_time => '{oldest}')")
    assert state_of(table) == before
    (done,) = rows(table, f"call restore_to_instant(table => 'a.b', instant_time => '{oldest}', cascade => true)")
    assert (done["restore_result"], done["savepoints_deleted"]) == (True, newest)
    assert [row[0] for row in content(table)] == [1, 2, 3]


def test_the_newest_commit_is_rolled_back_by_its_instant(table: HoodieTable) -> None:
    before = content(table)
    instant = add(table, 5)
    (done,) = rows(table, f"call rollback_to_instant('a.b', '{instant}')")
    assert (done["rollback_result"], done["rolled_back"], done["rows_taken_back"]) == (True, instant, 1)
    assert content(table) == before
    (entry,) = [row for row in rows(table, "call show_timeline('a.b')") if row["action"] == "rollback"]
    assert instant in str(entry["rollback_info"])


@pytest.mark.parametrize(
    "text",
    [
        "call create_savepoint(table => 'a.b', dry_run => true)",
        "call rollback_to_savepoint(table => 'a.b', instant_time => 'start', dry_run => true)",
        "call restore_to_instant(table => 'a.b', instant_time => '{first}', dry_run => true)",
        "call rollback_to_instant(table => 'a.b', instant_time => '{last}', dry_run => true)",
        "call run_clean(table => 'a.b', retain_commits => 1, dry_run => true)",
        "call archive_commits(table => 'a.b', min_commits => 2, retain_commits => 1, dry_run => true)",
    ],
)
def test_a_dry_run_says_what_would_be_done_and_changes_nothing(table: HoodieTable, text: str) -> None:
    first = table.history()[1].instant
    table.savepoint(first, name="start")
    add(table, 1, 9)
    last = add(table, 1)
    before = state_of(table)
    assert len(rows(table, text.format(first=first, last=last))) == 1
    assert state_of(table) == before


def test_a_compaction_is_scheduled_shown_and_run(table: HoodieTable) -> None:
    if str(table.config.table_type) != "MERGE_ON_READ":
        with pytest.raises(CompactionError):
            rows(table, "call run_compaction('run', 'a.b')")
        return
    add(table, 1, 2)
    before = content(table)
    (planned,) = rows(table, "call run_compaction(op => 'schedule', table => 'a.b')")
    assert rows(table, "call show_compaction('a.b')") == [
        {"timestamp": planned["timestamp"], "operation_size": planned["operation_size"], "state": "REQUESTED"}
    ]
    (note,) = [row["note"] for row in rows(table, "call show_timeline('a.b')") if row["action"] == "compaction"]
    assert "archiving stops here" in str(note)
    (done,) = rows(table, f"call run_compaction(op => 'run', table => 'a.b', timestamp => {planned['timestamp']})")
    assert (done["timestamp"], done["state"]) == (planned["timestamp"], "COMPLETED")
    assert rows(table, "call show_compaction('a.b')")[0]["state"] == "COMPLETED"
    assert content(table) == before
    assert rows(table, "call run_compaction('scheduleAndExecute', 'a.b')") == []


@pytest.mark.parametrize(("op", "steps"), [("run", 1), ("execute", 1), ("scheduleAndExecute", 2)])
def test_what_waits_to_be_compacted_is_not_passed_by(tmp_path: Path, op: str, steps: int) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("day", pa.string())])
    made = Lakehouse(str(tmp_path)).create_table("a.b", schema=schema, record_key=["id"], partition_by=["day"], table_type="mor")
    made.bulk_insert(pa.table({"id": [1, 2], "n": [0, 0], "day": ["x", "y"]}, schema=schema))
    made.upsert(pa.table({"id": [1], "n": [1], "day": ["x"]}, schema=schema))
    (planned,) = rows(made, "call run_compaction('schedule', 'a.b')")
    made.upsert(pa.table({"id": [2], "n": [2], "day": ["y"]}, schema=schema))
    shown = rows(made, f"call run_compaction('{op}', 'a.b', dry_run => true)")
    assert [(row["timestamp"], row["state"]) for row in shown] == [(planned["timestamp"], "PLANNED"), (None, "PLANNED")][:steps]
    done = rows(made, f"call run_compaction('{op}', 'a.b')")
    assert [row["state"] for row in done] == ["COMPLETED"] * steps
    assert done[0]["timestamp"] == planned["timestamp"]
    assert all(row["state"] == "COMPLETED" for row in rows(made, "call show_compaction('a.b')"))
    assert sorted(made.to_arrow(columns=["n"])["n"].to_pylist()) == [1, 2]


def test_an_unknown_operation_of_a_compaction_is_refused(table: HoodieTable) -> None:
    with pytest.raises(OptionError, match="not one of run, schedule, execute"):
        rows(table, "call run_compaction('now', 'a.b')")


def test_a_clean_deletes_and_is_shown_and_archived_commits_are_still_shown(table: HoodieTable) -> None:
    for number in range(4):
        table.insert_overwrite_table(pa.table({"id": [number], "day": ["x"]}, schema=table.schema))
    if str(table.config.table_type) == "MERGE_ON_READ":
        add(table, 3)  # or archiving would stop at the first delta commit, from which the next compaction is reckoned
        rows(table, "call run_compaction('run', 'a.b')")
    before = content(table)
    stored = len(list(Path(table.path).rglob("*.parquet")))
    (cleaned,) = rows(table, "call run_clean(table => 'a.b', retain_commits => 1)")
    assert stored - len(list(Path(table.path).rglob("*.parquet"))) == cleaned["total_files_deleted"] > 0  # type: ignore[operator]
    (shown,) = rows(table, "call show_cleans('a.b')")
    assert (shown["clean_time"], shown["total_files_deleted"]) == (cleaned["start_clean_time"], cleaned["total_files_deleted"])
    (archived,) = rows(table, "call archive_commits(table => 'a.b', min_commits => 2, max_commits => 3, retain_commits => 1)")
    assert (archived["result"], int(str(archived["archived"])) > 0) == (0, True), archived["kept"]
    everything = rows(table, "call show_timeline('a.b', limit => 100, showArchived => true)")
    gone = [row for row in everything if row["timeline_type"] == "ARCHIVED"]
    assert len(gone) == archived["archived"]
    assert len({row["instant_time"] for row in everything}) == len(everything)
    assert content(table) == before


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_comment_is_kept_as_it_is_or_refused(lakehouse: Lakehouse, payload: str) -> None:
    schema = pa.schema([("id", pa.int64())])
    made = lakehouse.create_table("a.b", schema=schema, record_key=["id"])
    made.bulk_insert(pa.table({"id": [1]}, schema=schema))
    text = f"call create_savepoint(table => 'a.b', comments => {literal(payload)}, name => {literal(payload)})"
    try:
        rows(made, text)
    except SavepointError:
        assert made.savepoints() == []
    else:
        (kept,) = made.savepoints()
        assert (kept.comment, kept.name) == (payload, payload)
        assert made.to_arrow(as_of=payload).num_rows == 1
    assert [row["id"] for row in made.to_arrow().to_pylist()] == [1]


def test_options_are_those_of_the_engine(table: HoodieTable) -> None:
    with pytest.raises(UnknownOptionError, match=r"did you mean 'hoodie.clean.commits.retained'"):
        call("call run_clean(table => 'a.b', options => 'hoodie.clean.commits.retain=1')")
    with pytest.raises(OptionError, match="is not options"):
        call("call run_clean(table => 'a.b', options => 'whatever')")


def test_sql_errors_are_one_tree() -> None:
    with pytest.raises(SqlError):
        call("call nothing()")


@pytest.mark.parametrize(
    "arguments",
    [
        "retain_commits => 1, hours_retained => 2",
        "retain_commits => 1, clean_policy => 'KEEP_LATEST_BY_HOURS'",
        "file_versions_retained => 1, hours_retained => 2, clean_policy => 'KEEP_LATEST_COMMITS'",
    ],
)
def test_a_clean_is_not_told_to_keep_what_its_policy_does_not_look_at(table: HoodieTable, arguments: str) -> None:
    before = table.timeline
    with pytest.raises(OptionError, match="a clean keeps by one policy; given: "):
        rows(table, f"call run_clean(table => 'a.b', {arguments})")
    assert HoodieTable.open(table.path).timeline == before


@pytest.mark.parametrize("key", ["hoodie.clean.policy", "hoodie.cleaner.policy"])
def test_an_option_of_a_clean_does_not_contradict_an_argument(table: HoodieTable, key: str) -> None:
    options = f"options => '{key}=KEEP_LATEST_FILE_VERSIONS', dry_run => true"
    told = r"given: retain_commits \(KEEP_LATEST_COMMITS\), hoodie\.clean\.policy KEEP_LATEST_FILE_VERSIONS"
    with pytest.raises(OptionError, match=f"CALL run_clean: a clean keeps by one policy; {told}"):
        rows(table, f"call run_clean(table => 'a.b', retain_commits => 1, {options})")
    for more in ("", "file_versions_retained => 2, ", "retain_commits => 1, file_versions_retained => 2, "):
        assert rows(table, f"call run_clean(table => 'a.b', {more}{options})")[0]["clean_policy"] == "KEEP_LATEST_FILE_VERSIONS"


def test_an_argument_of_a_clean_wins_over_the_option_of_the_same(lakehouse: Lakehouse) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    properties = {"hoodie.clean.automatic": "false"}
    table = lakehouse.create_table("a.b", schema=schema, record_key=["id"], properties=properties)
    for number in range(6):
        table.upsert(pa.table({"id": [1], "v": [number]}, schema=schema))
    for option in ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained"):
        text = f"call run_clean(table => 'a.b', retain_commits => 1, options => '{option}=3', dry_run => true)"
        assert rows(table, text)[0]["total_files_deleted"] == 4
    options = "options => 'hoodie.clean.policy=KEEP_LATEST_FILE_VERSIONS', dry_run => true"
    assert rows(table, f"call run_clean(table => 'a.b', clean_policy => 'KEEP_LATEST_COMMITS', {options})")[0]["clean_policy"] == (
        "KEEP_LATEST_COMMITS"
    )


@pytest.mark.parametrize("key", ["hoodie.clean.hours.retained", "hoodie.cleaner.hours.retained"])
def test_an_option_of_a_clean_says_its_policy_as_an_argument_does(table: HoodieTable, key: str) -> None:
    (done,) = rows(table, f"call run_clean(table => 'a.b', options => '{key}=3', dry_run => true)")
    assert done["clean_policy"] == "KEEP_LATEST_BY_HOURS"
    with pytest.raises(OptionError, match=r"given: retain_commits \(KEEP_LATEST_COMMITS\), hoodie\.clean\.hours\.retained"):
        rows(table, f"call run_clean(table => 'a.b', retain_commits => 1, options => '{key}=3')")


@pytest.mark.parametrize("asked", ["op => 'execute'", "instants => '20260101000000000'"])
@pytest.mark.parametrize(
    "planned", ["order => 'id'", "order_strategy => 'hilbert'", "predicate => 'true'", "selected_partitions => 'day=x'"]
)
def test_a_clustering_that_is_planned_takes_nothing_that_plans_it(table: HoodieTable, asked: str, planned: str) -> None:
    with pytest.raises(OptionError, match=f"{planned.split()[0]} is for a plan that is made"):
        rows(table, f"call run_clustering(table => 'a.b', {asked}, {planned})")


def test_a_clean_takes_all_that_hudi_takes_where_the_policy_says_which_counts(table: HoodieTable) -> None:
    arguments = "retain_commits => 1, hours_retained => 2, clean_policy => 'keep_latest_by_hours'"
    text = f"call run_clean(table => 'a.b', {arguments}, dry_run => true)"
    assert rows(table, text)[0]["clean_policy"] == "KEEP_LATEST_BY_HOURS"
