"""The DB-API cursor over a result of the engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from dbt.adapters.lakehouse.work.cursor import Cursor


class FakeFrame:
    def __init__(self, table: pa.Table) -> None:
        self.table = table
        fields = [SimpleNamespace(name=f.name, dataType=SimpleNamespace(simpleString=lambda: "int"), nullable=True) for f in table.schema]
        self.schema = SimpleNamespace(fields=fields)

    def toArrow(self) -> pa.Table:
        return self.table


class FakeSession:
    def __init__(self, *answers: Any) -> None:
        self.answers, self.seen = list(answers), []
        self.header = ""

    def run(self, sql: str, bindings: Any) -> Any:
        self.seen.append((sql, bindings))
        return self.answers.pop(0)


ROWS = pa.table({"a": [1, 2, 3]})


def test_rows_come_once_and_in_order() -> None:
    cursor = Cursor(FakeSession(FakeFrame(ROWS))).execute("select a")
    assert cursor.fetchone() == (1,)
    assert cursor.fetchmany(1) == [(2,)]
    assert cursor.fetchall() == [(3,)]
    assert cursor.fetchone() is None
    assert cursor.description is not None
    assert cursor.description[0][:2] == ("a", "int")


def test_bindings_travel_beside_the_text() -> None:
    session = FakeSession(FakeFrame(ROWS))
    Cursor(session).execute("select ? as a", ["O'Brien"])
    assert session.seen == [("select ? as a", ["O'Brien"])]


def test_the_result_is_that_of_the_last_statement() -> None:
    session = FakeSession(None, FakeFrame(ROWS))
    cursor = Cursor(session).execute("set x=1; select a;")
    assert [sql for sql, _ in session.seen] == ["set x=1", "select a"]
    assert len(cursor.fetchall()) == 3


def test_a_write_has_a_result_and_no_rows() -> None:
    cursor = Cursor(FakeSession("written")).execute("insert into t select 1")
    assert (cursor.result, cursor.description, cursor.fetchall()) == ("written", None, [])


def test_the_comment_of_dbt_moves_no_line_of_the_statement() -> None:
    session = FakeSession(None)
    session.header = "/* two\nlines */\n"
    Cursor(session).execute("/* two\nlines */\nselect 1\nas a")
    assert session.seen == [("/* two lines */ select 1\nas a", None)]
