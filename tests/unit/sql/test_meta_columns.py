"""Which relations of a statement have Hudi's meta columns, and which stars leave them out."""

from __future__ import annotations

import pytest

from lakehouse_engine.model.keys import META_COLUMNS
from lakehouse_engine.sql.binding.bind import Pin
from lakehouse_engine.sql.binding.binder import Names, ViewText, bind_statement
from lakehouse_engine.sql.grammar.references import Parts

TABLES = {("s", "t"), ("s", "u"), ("o", "t")}
VIEWS = {
    ("s", "v"): ViewText("select * from s.t where id > 0"),
    ("s", "joined"): ViewText("select * from s.t join s.u using (id)"),
    ("s", "named"): ViewText("select * from s.t", ("a", "b")),
    ("s", "shows"): ViewText("select id, _hoodie_commit_time from s.t"),
    ("s", "itself"): ViewText("select * from s.itself"),
}
HIDDEN = ", ".join(f"`{name}`" for name in META_COLUMNS)


def of(*names: str) -> str:
    """The meta columns of relations, as a star leaves them out."""
    return " EXCEPT (" + ", ".join(f"`{one}`.`{name}`" for one in names for name in META_COLUMNS) + ")"


ONE = f" EXCEPT ({HIDDEN})"
NAMED = "where _hoodie_file_name > ''"
LATER = "where _hoodie_commit_time > '1'"


def bound(text: str) -> str:
    """The statement as it is bound: a table with its meta columns is `+name`, a view `{its query}`."""

    def pin_table(pin: Pin) -> str:
        return ("+" if pin.meta_columns else "") + ".".join(pin.parts) + ("@changes" if pin.changes else "")

    def knows(parts: Parts) -> bool:
        return parts in TABLES or parts in VIEWS

    names = Names(knows, VIEWS.get, pin_table, lambda sql, columns: f"{{{sql}}}", TABLES.__contains__)
    return bind_statement(text, names).text.replace("`", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select _hoodie_commit_time from s.t", "select _hoodie_commit_time from +s.t AS t"),
        ("select id from s.t where `_HOODIE_Record_Key` = '1'", "select id from +s.t AS t where _HOODIE_Record_Key = '1'"),
        ("select * from s.t x where x._hoodie_commit_time > '1'", f"select *{ONE} from +s.t x where x._hoodie_commit_time > '1'"),
        ("select x.*, 1 from s.t x order by _hoodie_file_name", f"select x.*{ONE}, 1 from +s.t x order by _hoodie_file_name"),
        ("select count(*), hash(*), _hoodie_commit_time from s.t", f"select count(*), hash(*{ONE}), _hoodie_commit_time from +s.t AS t"),
        ("select * except (id) from s.t t where _hoodie_file_name > ''", f"select * except (id, {HIDDEN}) from +s.t t {NAMED}"),
        # each query has its own
        (
            "select * from s.u where id in (select id from s.t where _hoodie_commit_time > '1')",
            "select * from s.u AS u where id in (select id from +s.t AS t where _hoodie_commit_time > '1')",
        ),
        (
            "select * from s.u union select * from s.t where _hoodie_commit_time > '1'",
            f"select * from s.u AS u union select *{ONE} from +s.t AS t where _hoodie_commit_time > '1'",
        ),
        (
            "select * from s.u x where exists (select 1 from s.t where t.id = x._hoodie_record_key)",
            f"select *{ONE} from +s.u x where exists (select 1 from s.t AS t where t.id = x._hoodie_record_key)",
        ),
        (
            "select * from s.u, lateral (select u._hoodie_commit_time as c)",
            f"select *{of('u')} from +s.u AS u, lateral (select u._hoodie_commit_time as c)",
        ),
        # joins
        (
            "select * from s.t join s.u using (id) where s.t._hoodie_commit_time > '1'",
            f"select *{of('t')} from +s.t AS t join s.u AS u using (id) where t._hoodie_commit_time > '1'",
        ),
        (
            "select a.*, b.* from s.t a left join s.u b on a._hoodie_record_key = b._hoodie_record_key",
            f"select a.*{of('a')}, b.*{of('b')} from +s.t a left join +s.u b on a._hoodie_record_key = b._hoodie_record_key",
        ),
        ("select _hoodie_commit_time from s.t, s.u", "select _hoodie_commit_time from +s.t AS t, +s.u AS u"),
        (
            "select * from s.t join o.t on s.t.id = o.t.id where o.t._hoodie_commit_time > '1'",
            f"select *{of('s.t', 'o.t')} from +s.t AS s.t join +o.t AS o.t on s.t.id = o.t.id where o.t._hoodie_commit_time > '1'",
        ),
        # sub-queries, common table expressions and views hand them on
        (
            "select * from (select * from s.t limit 3) where _hoodie_commit_time > '1'",
            f"select *{ONE} from (select * from +s.t AS t limit 3) where _hoodie_commit_time > '1'",
        ),
        (
            "with a as (select * from s.t), b as (select x.* from a x) select * from b join a using (id) where b._hoodie_commit_time > '1'",
            f"with a as (select * from +s.t AS t), b as (select x.* from a x) select *{of('b', 'a')} from b join a using (id)"
            " where b._hoodie_commit_time > '1'",
        ),
        (f"select * from s.v {LATER}", f"select *{ONE} from {{select * from +s.t AS t where id > 0}} AS v {LATER}"),
        (f"select id from s.t version as of '1' {LATER}", f"select id from +s.t  AS t {LATER}"),
        ("select _hoodie_commit_time from hudi_read_optimized('s.t') r", "select _hoodie_commit_time from +s.t r"),
        ("select *, _hoodie_commit_time from lakehouse_with_deleted('s.t') r", f"select *{ONE}, _hoodie_commit_time from +s.t r"),
        # files have the columns that they have
        ("select *, _hoodie_commit_time from read_files('/x', format => 'orc') f", "select *, _hoodie_commit_time from read_files f"),
        (
            "select *, t._hoodie_commit_time from s.t t, read_files('/x', format => 'csv') f",
            f"select *{of('t')}, t._hoodie_commit_time from +s.t t, read_files f",
        ),
        # what shows them itself is meant
        (
            "select _hoodie_commit_time, u.* from hudi_table_changes('s.t', 'latest_state', 'earliest') c join s.u on c.id = u.id",
            "select _hoodie_commit_time, u.* from s.t@changes c join s.u AS u on c.id = u.id",
        ),
        (
            f"with c as (select id, _hoodie_commit_time from s.t) select * from c join s.u using (id) {LATER}",
            f"with c as (select id, _hoodie_commit_time from +s.t AS t) select * from c join s.u AS u using (id) {LATER}",
        ),
        (
            "select _hoodie_commit_time from s.shows join s.u using (id)",
            "select _hoodie_commit_time from {select id, _hoodie_commit_time from +s.t AS t} AS shows join s.u AS u using (id)",
        ),
        (f"select 1 from elsewhere join s.u using (id) {LATER}", f"select 1 from elsewhere join s.u AS u using (id) {LATER}"),
    ],
)
def test_a_name_gives_the_columns_to_what_it_means_and_stars_leave_them_out(text: str, expected: str) -> None:
    assert bound(text) == expected.replace("`", "")


@pytest.mark.parametrize(
    "text",
    [
        "select * from s.t",
        "select '_hoodie_commit_time', _hoodie_is_deleted from s.t",
        "select 1 as _hoodie_commit_time from s.t",
        "select _hoodie_commit_time from s.t as x(_hoodie_commit_time, b)",
        "select * from s.t natural join s.u where t._hoodie_commit_time > '1'",
        "select * from s.t pivot (sum(id) for day in ('a')) where _hoodie_commit_time > '1'",
        "from s.t |> where _hoodie_commit_time > '1'",
        "select _hoodie_commit_time from (select distinct * from s.t)",
        "select _hoodie_commit_time from (select * from s.t union all select * from s.u)",
        "select _hoodie_commit_time from (select * from s.t join s.u using (id))",
        "select _hoodie_commit_time from (select id from s.t)",
        "with c as (select * from s.t) select _hoodie_commit_time from c where id in (table c)",
        "with c as (select * from s.t) select 1 from c where _hoodie_commit_time > '1' union all table c",
        "with c as (select * from s.t) select 1 from c x(a, b), c where c._hoodie_commit_time > '1'",
        "select _hoodie_commit_time from s.named",
        "select _hoodie_commit_time from s.joined",
    ],
)
def test_what_cannot_have_them_is_read_as_ever(text: str) -> None:
    found = bound(text)
    assert "+" not in found
    assert "EXCEPT" not in found


def test_many_common_table_expressions_are_looked_at_once_each() -> None:
    ctes = ["c0 as (select * from s.t)", *(f"c{n} as (select * from c{n - 1} join c{n - 1} b using (id))" for n in range(1, 40))]
    assert "+" not in bound(f"with {', '.join(ctes)} select _hoodie_commit_time from c39")
