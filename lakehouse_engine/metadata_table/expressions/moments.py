"""Functions of days and moments, as Spark computes them, with bounds that hold in each time zone.

Spark takes the zone of the session for moments, which each writer and each query of Hudi has for itself. No zone is further from UTC than
18 hours (Java `ZoneOffset`), so what a function is 18 hours earlier and later bounds it in all of them. Days, and moments without a zone,
have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.metadata_table.expressions.bounded import Bounded, Expression, anything
from lakehouse_engine.metadata_table.expressions.patterns import formatted, is_of_days, orders_by_time, parsed_pattern

_DAY = 24 * 60 * 60
_APART = 18 * 60 * 60
_MICROS = 1_000_000
_HALF = 1 << 31
_FIRST, _LAST = -62_135_596_800 + 2 * _DAY, 253_402_300_799 - 2 * _DAY
"""Seconds between which years have four digits, with a shift to other zones."""
_DEFAULT_FORMAT = "yyyy-MM-dd HH:mm:ss"
_READ = {"year": pc.year, "month": pc.month, "day": pc.day, "hour": pc.hour}
_CYCLES = {"month": (1, 12), "day": (1, 31)}
_COARSER = {"month": (pc.year,), "day": (pc.year, pc.month)}

OfTime = Callable[[pa.ChunkedArray], pa.ChunkedArray]
"""A function of moments without a zone, in seconds."""


def part_of_time(name: str, kind: pa.DataType) -> Expression | None:
    """`year`, `month`, `day` and `hour` of days and moments; None for the hour of moments with a zone, which may be any."""
    read = partial(_read, name)
    if pat.is_date32(kind) or _has_no_zone(kind):
        known = name != "hour" or _has_no_zone(kind)
        return Expression(pa.int32(), partial(_of_time, read, pa.int32(), 0), grows=name == "year") if known else None
    if not _has_zone(kind) or name == "hour":
        return None
    if name == "year":
        return Expression(pa.int32(), partial(_of_time, read, pa.int32(), _APART), grows=True, is_exact=False)
    return Expression(pa.int32(), partial(_of_cycle, name), grows=True, is_exact=False)


def to_date(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    """`to_date` of days and moments."""
    if options or not (pat.is_date32(kind) or _has_zone(kind) or _has_no_zone(kind)):
        return None
    if pat.is_date32(kind):
        return Expression(kind, Bounded.exactly, grows=True)
    compute = partial(_of_time, _day, pa.date32(), _APART if _has_zone(kind) else 0)
    return Expression(pa.date32(), compute, grows=True, is_exact=_has_no_zone(kind))


def to_timestamp(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    """`to_timestamp` of moments with a zone."""
    return Expression(kind, Bounded.exactly, grows=True, is_exact=False) if _has_zone(kind) and not options else None


def unix_timestamp(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    """`unix_timestamp` of days, which begin at another moment in each zone, and of moments with a zone. A format is for texts only."""
    if set(options) - {"format"} or not (pat.is_date32(kind) or _has_zone(kind)):
        return None
    # Releases of Spark round seconds before 1970 down or up.
    apart = _APART if pat.is_date32(kind) else 1
    return Expression(pa.int64(), partial(_of_time, _unix, pa.int64(), apart), grows=True, is_exact=False)


def from_unixtime(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    """`from_unixtime` of whole numbers, with a pattern whose texts are ordered as the moments are."""
    parts = parsed_pattern(options.get("format", _DEFAULT_FORMAT))
    if parts is None or not orders_by_time(parts) or kind not in (pa.int32(), pa.int64()):
        return None
    return Expression(pa.string(), partial(_of_time, partial(formatted, parts), pa.string(), _APART), grows=True, is_exact=False)


def date_format(kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    """`date_format` of days, with a pattern without times, and of moments with a zone, with one whose texts are ordered as these are."""
    parts = parsed_pattern(options.get("format", ""))
    if parts is None:
        return None
    if pat.is_date32(kind) and is_of_days(parts):
        return Expression(pa.string(), partial(_of_time, partial(formatted, parts), pa.string(), 0), grows=orders_by_time(parts))
    if not _has_zone(kind) or not orders_by_time(parts):
        return None
    return Expression(pa.string(), partial(_of_time, partial(formatted, parts), pa.string(), _APART), grows=True, is_exact=False)


def shifted_days(kind: pa.DataType, days: int) -> Expression | None:
    """`date_add` and `date_sub` of days; a sum beyond 32 bits begins again at the other end, as in Java."""
    return Expression(kind, partial(_shifted, days)) if pat.is_date32(kind) else None


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pat.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None)


def _has_no_zone(kind: pa.DataType) -> bool:
    return bool(pat.is_timestamp(kind) and kind.unit == "us" and kind.tz is None)


def _read(name: str, moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return _READ[name](moments).cast(pa.int32())


def _day(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.floor_temporal(moments, unit="day").cast(pa.date32())


def _unix(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return moments.cast(pa.int64())


def _shifted(days: int, values: pa.ChunkedArray) -> Bounded:
    sums = pc.add(values.cast(pa.int32()), pa.scalar((days + _HALF) % (2 * _HALF) - _HALF, pa.int32()))
    return Bounded.exactly(sums.cast(pa.date32()))


def _of_time(of_time: OfTime, kind: pa.DataType, apart: int, values: pa.ChunkedArray) -> Bounded:
    """A function of days, moments or seconds; with `apart` of what they are so many seconds earlier and later."""
    seconds = _seconds(values)
    if not _are_plain(seconds):
        return anything(values, kind)
    if not apart:
        return Bounded.exactly(of_time(seconds.cast(pa.timestamp("s"))))
    return Bounded(*(of_time(pc.add(seconds, shift).cast(pa.timestamp("s"))) for shift in (-apart, apart)))


def _of_cycle(name: str, values: pa.ChunkedArray) -> Bounded:
    """Month or day of month between the least and the greatest moment: any, unless both are in one year, or one month."""
    seconds, (least, greatest) = _seconds(values), _CYCLES[name]
    if _are_plain(seconds) and pc.count(seconds).as_py():
        first, last = (pc.add(of(seconds), shift).cast(pa.timestamp("s")) for of, shift in ((pc.min, -_APART), (pc.max, _APART)))
        if all(of(first) == of(last) for of in _COARSER[name]):
            least, greatest = (_READ[name](end).as_py() for end in (first, last))
    return Bounded(*(pa.chunked_array([pa.repeat(pa.scalar(end, pa.int32()), len(values))]) for end in (least, greatest)))


def _seconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Seconds since the epoch, rounded down, of days, moments, or seconds."""
    if pat.is_date32(values.type):
        return pc.multiply(values.cast(pa.int32()).cast(pa.int64()), _DAY)
    if not pat.is_timestamp(values.type):
        return values.cast(pa.int64())
    micros = values.cast(pa.int64())
    quotient = pc.divide(micros, _MICROS)
    return pc.subtract(quotient, pc.less(micros, pc.multiply(quotient, _MICROS)).cast(pa.int64()))


def _are_plain(seconds: pa.ChunkedArray) -> bool:
    """True if all years have four digits."""
    inside = pc.and_(pc.greater_equal(seconds, _FIRST), pc.less_equal(seconds, _LAST))
    return bool(pc.all(inside, min_count=0).as_py())
