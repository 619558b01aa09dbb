"""Functions of expression indexes (Hudi `ExpressionIndexSparkFunctions`): which there are, their options, and which are computed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.types as pat

from lakehouse_engine.errors import OptionError, UnavailableError
from lakehouse_engine.metadata_table.expressions import moments, texts
from lakehouse_engine.metadata_table.expressions.bounded import Bounded, Expression

EXPRESSION_OPTION = "expr"
IDENTITY = "identity"
_Make = Callable[[pa.DataType, Mapping[str, str]], Expression | None]

_OPTIONS: dict[str, tuple[str, ...]] = {
    IDENTITY: (),
    **dict.fromkeys(("upper", "lower", "length", "year", "month", "day", "hour"), ()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), ("trimString",)),
    **dict.fromkeys(("from_unixtime", "unix_timestamp", "date_format", "to_date", "to_timestamp"), ("format",)),
    **dict.fromkeys(("date_add", "date_sub"), ("days",)),
    "substring": ("pos", "len"),
    "split": ("pattern",),
    "regexp_extract": ("pattern", "idx"),
    "regexp_replace": ("pattern", "replacement"),
}
"""Options of Hudi's functions, besides `expr`."""
_NEEDED = {"date_add", "date_sub", "substring", "date_format"}
"""Functions that need all of their options."""


def function_options(function: str, options: Mapping[str, str]) -> dict[str, str]:
    """Options of the function itself. Raises `OptionError` for a function that Hudi does not have, and for an option that is missing or
    that the function does not have.
    """
    if function not in _OPTIONS:
        raise OptionError(f"{function!r} is no function of an expression index; Hudi has {', '.join(sorted(_OPTIONS))}")
    own = {name: value for name, value in options.items() if name != EXPRESSION_OPTION}
    known = _OPTIONS[function]
    unknown = [name for name in own if name not in known]
    if unknown:
        raise OptionError(f"the function {function} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}", option=unknown[0])
    lacking = [name for name in known if name not in own and function in _NEEDED]
    if lacking:
        raise OptionError(f"the function {function} needs the option {lacking[0]!r}", option=lacking[0])
    return own


def expression_of(function: str, options: Mapping[str, str], kind: pa.DataType) -> Expression:
    """The function over a column of type `kind`. Raises as `function_options`, and `UnavailableError` for a function, pattern or type
    that is not computed here exactly as by Spark.
    """
    own = function_options(function, options)
    made = _MAKERS[function](kind, own) if function in _MAKERS else None
    if made is None:
        given = "".join(f", {name}={value!r}" for name, value in own.items())
        raise UnavailableError(f"{function} of {kind}{given} is not computed here exactly as by Spark")
    return made


def _identity(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    plain = pat.is_string(kind) or kind in (pa.int32(), pa.int64())
    return Expression(kind, Bounded.exactly, grows=True) if plain else None


def _whole_number(options: Mapping[str, str], name: str) -> int:
    try:
        number = int(options[name])
    except ValueError:
        number = 1 << 31
    if not -(1 << 31) < number < 1 << 31:
        raise OptionError(f"the option {name!r} of an expression index is a whole number of 32 bits, not {options[name]!r}", option=name)
    return number


def _substring(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    return texts.substring(kind, _whole_number(options, "pos"), _whole_number(options, "len"))


def _days(sign: int, kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    return moments.shifted_days(kind, sign * _whole_number(options, "days"))


def _plain(make: Callable[[str, pa.DataType], Expression | None], name: str) -> _Make:
    return lambda kind, options: make(name, kind)


_MAKERS: dict[str, _Make] = {
    IDENTITY: _identity,
    **{name: _plain(texts.cased, name) for name in ("upper", "lower")},
    **{name: _plain(moments.part_of_time, name) for name in ("year", "month", "day", "hour")},
    **{name: partial(texts.trimmed, name) for name in ("trim", "ltrim", "rtrim")},
    "length": lambda kind, options: texts.length(kind),
    "substring": _substring,
    "date_add": partial(_days, 1),
    "date_sub": partial(_days, -1),
    "to_date": moments.to_date,
    "to_timestamp": moments.to_timestamp,
    "unix_timestamp": moments.unix_timestamp,
    "from_unixtime": moments.from_unixtime,
    "date_format": moments.date_format,
}
