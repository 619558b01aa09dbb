"""Names of relations become pins, everything else stays: a corpus of statements, and the refusals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakehouse_engine.errors import SqlError, UnsupportedSqlError
from lakehouse_engine.sql.binding.bind import AsOf, Changes, Pin, bind
from lakehouse_engine.sql.binding.binder import Names, ViewText, bind_statement
from tests.unit.sql.corpus import BOUND, KNOWN, PAIRS, REFUSED, UNTOUCHED, expected, statement, view_name


def knows(parts: tuple[str, ...]) -> bool:
    return tuple(part.lower() for part in parts) in KNOWN


def view_for(pin: Pin) -> str:
    name = view_name(pin.parts)
    if pin.as_of is not None:
        name += f"@{'computed ' if pin.as_of.computed else ''}{pin.as_of.kind} {pin.as_of.value}"
    if pin.changes is not None:
        end = None if pin.changes.end is None else pin.changes.end.value
        name += f"@changes {pin.changes.mode} {pin.changes.begin.value} {end}"
    return name


@pytest.mark.parametrize("marked", BOUND)
def test_reads_are_bound_and_the_rest_stays(marked: str) -> None:
    assert bind(statement(marked), knows, view_for).text == expected(marked)


@pytest.mark.parametrize("case", PAIRS)
def test_special_forms_are_bound(case: str) -> None:
    text, wanted = PAIRS[case]
    assert bind(text, knows, view_for).text == wanted


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_reads_nothing_known_stays(text: str) -> None:
    bound = bind(text, knows, view_for)
    assert (bound.text, bound.views) == (text, {})


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_bound_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        bind(text, knows, view_for)
    assert REFUSED[text] in str(caught.value)


def test_obstacles_on_relations_of_others_are_left_to_spark() -> None:
    text = "select * from z with ('k' = 'v'), stream y, x timestamp as of current_date()"
    assert bind(text, knows, view_for).text == text


def test_one_pin_is_asked_for_once_per_statement() -> None:
    asked: list[Pin] = []

    def remember(pin: Pin) -> str:
        asked.append(pin)
        return f"v{len(asked)}"

    bound = bind("select * from a.b x, a.b y, a.b version as of '1' z", knows, remember)
    assert len(asked) == 2
    assert bound.text == "select * from `v1` x, `v1` y, `v2`  z"


def test_view_text_is_bound_down_to_tables_and_each_table_is_pinned_once() -> None:
    views = {("v", "one"): ViewText("select * from a.b"), ("v", "two"): ViewText("select * from v.one join a.b using (id)", ("x",))}
    queries: list[tuple[str, tuple[str, ...]]] = []
    pins: list[Pin] = []

    def pin_table(pin: Pin) -> str:
        pins.append(pin)
        return "t_" + "_".join(pin.parts)

    def pin_query(sql: str, columns: tuple[str, ...]) -> str:
        queries.append((sql, columns))
        return f"q{len(queries)}"

    names = Names(lambda parts: parts in views or knows(parts), views.get, pin_table, pin_query)
    bound = bind_statement("select * from v.two, v.one, A.B", names)
    assert bound.text == "select * from `q2` AS `two`, `q1` AS `one`, `t_a_b` AS `B`"
    assert queries == [
        ("select * from `t_a_b` AS `b`", ()),
        ("select * from `q1` AS `one` join `t_a_b` AS `b` using (id)", ("x",)),
    ]
    assert len(pins) == 1


def test_views_that_read_each_other_in_a_circle_are_refused() -> None:
    views = {("v", "one"): ViewText("select * from v.two"), ("v", "two"): ViewText("select * from V.ONE")}

    def stored(parts: tuple[str, ...]) -> ViewText | None:
        return views.get((parts[0].lower(), parts[1].lower()))

    names = Names(lambda parts: stored(parts) is not None, stored, lambda pin: "t", lambda sql, columns: "q")
    with pytest.raises(SqlError, match=r"v\.one -> v\.two -> v\.one"):
        bind_statement("select * from v.one", names)


def test_time_travel_on_a_view_is_refused() -> None:
    names = Names(lambda parts: True, lambda parts: ViewText("select 1"), lambda pin: "t", lambda sql, columns: "q")
    with pytest.raises(UnsupportedSqlError, match="is a view"):
        bind_statement("select * from v.one version as of '1'", names)


def numbered(pins: list[Pin]) -> Callable[[Pin], str]:
    """Views v1, v2 ... of what is put into `pins`."""

    def view_for(pin: Pin) -> str:
        pins.append(pin)
        return f"v{len(pins)}"

    return view_for


def test_the_read_optimized_function_pins_base_files_now_and_at_an_instant() -> None:
    pins: list[Pin] = []
    text = "select o.a, hudi_read_optimized.b from hudi_read_optimized('s.t') o join hudi_read_optimized('s.t', '2026-01-01')"
    bound = bind(text, lambda parts: parts == ("s", "t"), numbered(pins))
    assert pins == [Pin(("s", "t"), read_optimized=True), Pin(("s", "t"), AsOf("timestamp", "2026-01-01"), read_optimized=True)]
    assert "v1 o join" in bound.text.replace("`", "")


def test_typed_literals_of_the_table_functions_are_left_to_spark() -> None:
    pins: list[Pin] = []
    moment = "timestamp  '2026-01-01 10:00:00'"
    text = f"select 1 from hudi_read_optimized('s.t', {moment}) a, hudi_table_changes('s.t', 'latest_state', {moment} , date'2026-01-02')"
    bind(text, lambda parts: True, numbered(pins))
    computed = AsOf("timestamp", moment, computed=True)
    changes = Changes("latest_state", computed, AsOf("timestamp", "date'2026-01-02'", computed=True))
    assert pins == [Pin(("s", "t"), computed, read_optimized=True), Pin(("s", "t"), changes=changes)]


@pytest.mark.parametrize(
    "moment", ["current_timestamp() - interval 1 day", "date_sub(current_date(), 1)", "cast(:since as timestamp)", "greatest(:a, [:b][0])"]
)
def test_expressions_as_bounds_of_changes_are_left_to_spark(moment: str) -> None:
    pins: list[Pin] = []
    bind(f"select 1 from hudi_table_changes('s.t', 'latest_state', {moment}, {moment}) c", lambda parts: True, numbered(pins))
    bind(f"select 1 from hudi_read_optimized('s.t', {moment}) c", lambda parts: True, numbered(pins))
    computed = AsOf("timestamp", moment, computed=True)
    assert pins == [Pin(("s", "t"), changes=Changes("latest_state", computed, computed)), Pin(("s", "t"), computed, read_optimized=True)]


def test_a_number_as_a_bound_of_changes_is_its_digits() -> None:
    pins: list[Pin] = []
    bind("select 1 from hudi_table_changes('s.t', 'latest_state', -1) c", lambda parts: True, numbered(pins))
    assert pins == [Pin(("s", "t"), changes=Changes("latest_state", AsOf("timestamp", "-1"), None))]


@pytest.mark.parametrize("arguments", ["", "'s.t', '1', '2'", "'s.t where'", "concat('s', '.t')"])
def test_the_read_optimized_function_refuses_other_arguments(arguments: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="hudi_read_optimized"):
        bind(f"select 1 from hudi_read_optimized({arguments})", lambda parts: True, lambda pin: "v")
