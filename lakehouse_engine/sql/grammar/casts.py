"""Casts of values to be stored. Pure functions.

Spark's INSERT refuses a value that its column cannot hold, whatever `spark.sql.ansi.enabled` says. `cast` follows that setting: if it is
off, as in many sessions since Spark 3, the value becomes another number or null.
"""

from __future__ import annotations

from lakehouse_engine import errors
from lakehouse_engine.sql.grammar.lexer import quote_string

_WIDER = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = frozenset({*_WIDER, "decimal", "float", "double"})
_TIMES = frozenset({"date", "timestamp", "timestamp_ntz"})


def stored_as(value: str, given: str, kind: str) -> str:
    """`value` of the simple type `given` as type `kind`; it may be computed several times. Running it raises `SchemaIncompatibleError` for
    a value that the type cannot hold.
    """
    if kind in (given, "string") or given == "void" or _widens(given, kind):
        return f"cast({value} as {kind})"
    made = f"try_cast({value} as {kind})"
    # Split, so that a Spark error that prints this plan does not look like this error.
    raised, of = quote_string(f"\n{errors.__name__}."), quote_string(f"{errors.SchemaIncompatibleError.__name__}: the value ")
    name = value.strip("()").replace("`", "")
    whose = "" if name.startswith("__lakehouse_") else f" of {name[:80]}"
    after = quote_string(f"{whose} cannot be stored as {kind}; cast it in the query or give the column another type\n")
    refusal = f"raise_error(concat({raised}, {of}, cast({value} as string), {after}))"
    return f"case when {value} is null or {made} is not null then {made} else {refusal} end"


def assigned_as(value: str, kind: str) -> str:
    """The same for an expression of any type, computed once. Expensive if it calls a function: Spark does not compile such a plan."""
    if kind == "string":
        return f"cast(({value}) as {kind})"
    if "(" not in value:  # functions may give another value each time
        return stored_as(f"({value})", "", kind)
    once = "`__lakehouse_assigned`"
    return f"element_at(transform(array({value}), {once} -> {stored_as(once, '', kind)}), 1)"


def storable(given: str, kind: str) -> bool:
    """True if Spark's ANSI store assignment casts on insert: between numbers, to text, from null, between dates and timestamps."""
    if given == "void" or kind == "string":
        return True
    families = {_family(given), _family(kind)}
    return families <= _NUMBERS or families <= _TIMES


def _family(kind: str) -> str:
    return kind.split("(")[0].split("<")[0]


def _widens(given: str, kind: str) -> bool:
    if given in _WIDER and kind in _WIDER:
        return _WIDER.index(given) <= _WIDER.index(kind)
    return (given, kind) in (("float", "double"), ("date", "timestamp"))
