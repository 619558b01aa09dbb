"""Splitting texts into statements."""

from __future__ import annotations

import pytest

from lakehouse_engine.sql.grammar.split import first_word, split_statements, takes_limit


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("set a=1; select ';' as x", ["set a=1", "select ';' as x"]),
        ("select '\\';' as x; -- done;\n", ["select '\\';' as x"]),
        ('/* {"a;": 1} */ select `a;b`, "x;"', ['/* {"a;": 1} */ select `a;b`, "x;"']),
        ("-- only a comment;", []),
        ("begin select 1; select 2; end;", ["begin select 1; select 2; end"]),
        ("-- a\nBEGIN\nselect 1; end", ["-- a\nBEGIN\nselect 1; end"]),
        ("select /* a; /* b; */ c; */ 1; select 2", ["select /* a; /* b; */ c; */ 1", "select 2"]),
        ("select $$a;b$$; select r'\\'; select 2", ["select $$a;b$$", "select r'\\'", "select 2"]),
        ("select 1 -- a \\\n; b\n; select 2", ["select 1 -- a \\\n; b", "select 2"]),
        ("select 'not closed; select 2", ["select 'not closed; select 2"]),
        ("", []),
    ],
)
def test_split(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("select 1", "SELECT"),
        ("/* {\"app\": \"dbt\"} */ -- a\n ((with a as (select 1) select 1))", "WITH"),
        ("'select'", ""),
        ("-- select", ""),
        ("`select`", ""),
        ("", ""),
    ],
)
def test_the_first_word_is_that_of_the_statement(text: str, word: str) -> None:
    assert first_word(text) == word


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("select 1", True),
        ("-- a\n((select 1))", True),
        ("with a as (select 1) select * from a", True),
        ("from t select a", True),
        ("from t |> where a = 1", True),
        ("table t", True),
        ("call show_commits(table => 'a.b')", True),
        ("set a = 1; select 1;", True),
        ("select 'insert into t' as x, (select 1) as `insert into`", True),
        ("", True),
        ("insert into t select 1", False),
        ("select 1; insert into t select 1;", False),
        ("with a as (select 1) insert into t select * from a", False),
        ("with a as (select 1) update t set x = 1", False),
        ("from s insert into t select a insert overwrite u select a", False),
        ("update t set x = 1 where y = 2", False),
        ("delete from t", False),
        ("merge into t using s on t.a = s.a when matched then delete", False),
        ("explain select 1", False),
        ("describe t", False),
        ("show tables", False),
    ],
)
def test_what_limit_may_stand_behind(text: str, takes: bool) -> None:
    assert takes_limit(text) is takes
