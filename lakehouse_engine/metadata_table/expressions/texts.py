"""Functions of texts, as Spark computes them (`UTF8String`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.metadata_table.expressions.bounded import GREATEST_CHARACTER, Bounded, Expression

_NOT_ASCII = r"[^\x00-\x7f]"
_FROM_NOT_ASCII = rf"(?s){_NOT_ASCII}.*$"
_CASES = {"upper": pc.ascii_upper, "lower": pc.ascii_lower}
_TRIMS = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}

OfTexts = Callable[[pa.ChunkedArray], pa.ChunkedArray]


def cased(name: str, kind: pa.DataType) -> Expression | None:
    """`upper` and `lower`. What other characters than those of ASCII become depends on the release and the locale of Java, so a text with
    them is bounded by what stands before.
    """
    return Expression(kind, partial(_cased, _CASES[name])) if pat.is_string(kind) else None


def _cased(of_ascii: OfTexts, values: pa.ChunkedArray) -> Bounded:
    if not pc.any(pc.match_substring_regex(values, _NOT_ASCII)).as_py():
        return Bounded.exactly(of_ascii(values))
    certain = of_ascii(pc.replace_substring_regex(values, _FROM_NOT_ASCII, ""))
    is_whole = pc.equal(pc.binary_length(certain), pc.binary_length(values))
    # The greatest character stays as it is: one more of them than the text has is beyond all that the rest can become.
    beyond = pc.binary_repeat(GREATEST_CHARACTER, pc.add(pc.count_substring(values, GREATEST_CHARACTER), 1))
    return Bounded(certain, pc.if_else(is_whole, certain, pc.binary_join_element_wise(certain, beyond, "")))


def trimmed(name: str, kind: pa.DataType, options: Mapping[str, str]) -> Expression | None:
    """`trim`, `ltrim` and `rtrim` of spaces, or of the characters of the option `trimString`."""
    characters = options.get("trimString", " ")
    if not pat.is_string(kind) or not characters or set(options) - {"trimString"}:
        return None
    return Expression(kind, partial(_exactly, partial(_TRIMS[name], characters=characters)))


def length(kind: pa.DataType) -> Expression | None:
    """`length`: characters of texts, bytes of binaries."""
    if pat.is_string(kind):
        return Expression(pa.int32(), partial(_exactly, pc.utf8_length))
    return Expression(pa.int32(), partial(_exactly, pc.binary_length)) if pat.is_binary(kind) else None


def substring(kind: pa.DataType, position: int, count: int) -> Expression | None:
    """`substring` of texts: `count` characters from the `position`th on, or with a negative one from the end."""
    if not pat.is_string(kind):
        return None
    start = position - 1 if position > 0 else position
    stop = start + max(count, 0)
    end = None if start < 0 <= stop else stop
    return Expression(kind, partial(_exactly, partial(pc.utf8_slice_codeunits, start=start, stop=end)))


def _exactly(of_texts: OfTexts, values: pa.ChunkedArray) -> Bounded:
    return Bounded.exactly(of_texts(values))
