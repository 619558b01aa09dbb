"""Partition values made of moments (Hudi `TimestampBasedAvroKeyGenerator`): numbers or text in, formatted dates out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.compat import UTC
from lakehouse_engine.errors import OptionError, PartitionValueError
from lakehouse_engine.record.keys.date_pattern import DatePattern, java_zone
from lakehouse_engine.record.types import canonical_array

PREFIX = "hoodie.keygen.timebased."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT_OF_TYPE = {"UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS"}
_NANOSECONDS = {
    "NANOSECONDS": 1,
    "MICROSECONDS": 10**3,
    "MILLISECONDS": 10**6,
    "SECONDS": 10**9,
    "MINUTES": 60 * 10**9,
    "HOURS": 3600 * 10**9,
    "DAYS": 86400 * 10**9,
}
_MILLISECOND = 10**6
_WHOLE_MINUTE_OFFSETS_SINCE = 94_694_400_000
"""Milliseconds since the epoch (1973) from which every zone's UTC offset is a whole number of minutes."""


@dataclass(frozen=True, slots=True)
class TimestampFormat:
    """Settings from `hoodie.keygen.timebased.*`. `unit` is a Java `TimeUnit` for number columns; text columns have `input_patterns`.

    Without a configured zone, GMT is used where Hudi uses the JVM's zone.
    """

    output: DatePattern
    unit: str | None = None
    input_patterns: tuple[DatePattern, ...] = ()
    input_zone: tzinfo | None = None
    output_zone: tzinfo | None = None

    @classmethod
    def read(cls, properties: Mapping[str, str]) -> TimestampFormat:
        """From properties, keyed by the part after `hoodie.keygen.timebased.`.

        Hudi 0.15 does not store the type: it is text if an input pattern is stored, scalar if a unit is. Raises `OptionError` with the
        property if it is needed.
        """
        output = properties.get("output.dateformat")
        if not output:
            raise OptionError(f"a timestamp partition needs {PREFIX}output.dateformat")
        both = properties.get("timezone")
        zones = [both or properties.get(f"{side}.timezone") for side in ("input", "output")]
        kind = _kind(properties)
        unit = _UNIT_OF_TYPE.get(kind)
        patterns: tuple[DatePattern, ...] = ()
        if kind == "SCALAR":
            unit = properties.get("timestamp.scalar.time.unit", "SECONDS").strip().upper()
            if unit not in _NANOSECONDS:
                raise OptionError(f"{PREFIX}timestamp.scalar.time.unit={unit!r} is not one of {', '.join(_NANOSECONDS)}")
        elif unit is None:
            patterns = _input_patterns(properties)
        return cls(DatePattern.of(output), unit, patterns, *(java_zone(zone.strip()) if zone and zone.strip() else None for zone in zones))

    def texts(self, values: pa.Array | pa.ChunkedArray, column: str) -> pa.Array:
        """Formatted dates, never null: a null is 1 unit (or 1 ms) after the epoch, as in Hudi. Raises `PartitionValueError`."""
        array = canonical_array(values)
        return self._of_text(array, column) if self.unit is None else self._of_numbers(array, column)

    def _of_numbers(self, array: pa.Array, column: str) -> pa.Array:
        milliseconds = _to_milliseconds(_whole_numbers(array, self.unit, column), _NANOSECONDS[str(self.unit)])
        distinct, inverse = np.unique(self._floored(milliseconds), return_inverse=True)
        zone = self.output_zone or UTC
        texts = [self.output.format(_moment(int(value), column).astimezone(zone)) for value in distinct]
        return pa.array(texts, pa.string()).take(pa.array(inverse))

    def _floored(self, milliseconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Drop precision that the output does not show, so that few distinct moments remain to format."""
        if self.output.finer_than_seconds or not len(milliseconds):
            return milliseconds
        coarse = not self.output.finer_than_minutes and milliseconds.min() >= _WHOLE_MINUTE_OFFSETS_SINCE
        step = 60_000 if coarse else 1_000
        return milliseconds // step * step

    def _of_text(self, array: pa.Array, column: str) -> pa.Array:
        if not pat.is_string(array.type):
            raise PartitionValueError(
                f"the column {column!r} is {array.type}, and its partitions are read from text ({PREFIX}input.dateformat);"
                " cast it to string",
                column=column,
            )
        default = self.input_patterns[0].format((_EPOCH + timedelta(milliseconds=1)).astimezone(self.input_zone or self.output_zone or UTC))
        encoded = pc.fill_null(array, default).dictionary_encode()
        texts = [self._reformatted(text, column) for text in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices)

    def _reformatted(self, text: str, column: str) -> str:
        for pattern in self.input_patterns:
            moment = pattern.parse(text, self.input_zone or UTC)
            if moment is not None:
                return self.output.format(moment.astimezone(self.output_zone or self.input_zone or moment.tzinfo))
        patterns = ", ".join(pattern.text for pattern in self.input_patterns)
        raise PartitionValueError(f"the value {text!r} of the column {column!r} is not a date of the form {patterns}", column=column)


def _kind(properties: Mapping[str, str]) -> str:
    kind = properties.get("timestamp.type", "").strip().upper()
    if not kind:
        kind = "DATE_STRING" if properties.get("input.dateformat") else "SCALAR" if properties.get("timestamp.scalar.time.unit") else ""
    if kind not in (*_UNIT_OF_TYPE, "SCALAR", "DATE_STRING", "MIXED"):
        raise OptionError(
            f"{PREFIX}timestamp.type={kind!r} does not say what the partition column holds (Hudi 0.15 does not store it):"
            " pass it with the write, one of UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING, MIXED"
        )
    return kind


def _input_patterns(properties: Mapping[str, str]) -> tuple[DatePattern, ...]:
    listed = properties.get("input.dateformat", "")
    delimiter = properties.get("input.dateformat.list.delimiter.regex", ",")
    if delimiter != "," and any(character in delimiter for character in r"\.^$*+?{}[]|()"):
        raise OptionError(f"{PREFIX}input.dateformat.list.delimiter.regex={delimiter!r}: only plain text is known as a delimiter")
    patterns = tuple(DatePattern.of(part.strip()) for part in listed.split(delimiter) if part.strip())
    if not patterns:
        raise OptionError(f"a timestamp partition that is read from text needs {PREFIX}input.dateformat")
    return patterns


def _whole_numbers(array: pa.Array, unit: str | None, column: str) -> npt.NDArray[np.int64]:
    """The column's numbers as 64-bit integers, truncated, nulls as 1."""
    kind = array.type
    fits = pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind)
    fits = fits or (pat.is_timestamp(kind) and unit == "MICROSECONDS") or (pat.is_date(kind) and unit == "DAYS")
    if not fits:
        raise PartitionValueError(
            f"the column {column!r} is {kind}, and its partitions are made of a number of {str(unit).lower()};"
            " cast it to long, or set hoodie.keygen.timebased.timestamp.type to what it holds",
            column=column,
        )
    if pat.is_floating(kind) or pat.is_decimal(kind):
        array = pc.trunc(array)
    elif pat.is_date(kind):
        array = array.cast(pa.int32())
    try:
        return np.asarray(pc.fill_null(array.cast(pa.int64()), 1))
    except pa.ArrowInvalid as error:
        raise PartitionValueError(
            f"a value of the column {column!r} is not a number of {str(unit).lower()}: {error}", column=column
        ) from error


def _to_milliseconds(numbers: npt.NDArray[np.int64], nanoseconds: int) -> npt.NDArray[np.int64]:
    """Like Java's `TimeUnit.convert`: truncates towards zero, and saturates."""
    if nanoseconds < _MILLISECOND:
        divisor = _MILLISECOND // nanoseconds
        return np.where(numbers < 0, -(-numbers // divisor), numbers // divisor)
    factor = nanoseconds // _MILLISECOND
    limit = np.iinfo(np.int64).max // factor
    return np.clip(numbers, -limit, limit) * factor


def _moment(milliseconds: int, column: str) -> datetime:
    try:
        # A day's margin at both ends, so that the moment has a date in any zone.
        if not -62_135_510_400_000 <= milliseconds <= 253_402_214_400_000:
            raise OverflowError("outside the years 1 to 9999")
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise PartitionValueError(
            f"the moment {milliseconds} ms of the column {column!r} is outside the years 1 to 9999", column=column
        ) from error
