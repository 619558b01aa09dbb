"""Makes record key texts from key columns, and refuses values that cannot be keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lakehouse_engine.errors import RecordKeyError, UnsupportedTypeError
from lakehouse_engine.record.text import java_text, timestamp_text
from lakehouse_engine.record.types import canonical_array

NULL_PART = "__null__"
EMPTY_PART = "__empty__"
_SAMPLE = 5
_STABLE_BELOW = {pa.float64(): 2.0**54, pa.float32(): 2.0**25}


def single_keys(column: pa.ChunkedArray, field: str, *, timestamps_as_text: bool = False) -> pa.Array:
    """Bare values of one field; timestamps as numbers or text.

    Raises `RecordKeyError` for null, empty, NaN, negative zero and huge floats.
    """
    texts = _key_texts(column, field, timestamps_as_text)
    if texts.null_count or _has_empty(texts):
        bad = pc.or_kleene(pc.is_null(texts), pc.equal(texts, ""))
        raise _refused(bad, f"a null or empty record key (column {field!r})", "fill the column, or filter these rows out")
    return texts


def composite_keys(columns: Sequence[pa.ChunkedArray], fields: Sequence[str], *, timestamps_as_text: bool = False) -> pa.Array:
    """`field:value,field:value` in the order of the fields, with `__null__` and `__empty__` for null and empty values.

    Hudi escapes nothing, so values that could give two different rows one key are refused, and only those. Raises `RecordKeyError`.
    """
    texts = [_key_texts(column, field, timestamps_as_text) for column, field in zip(columns, fields, strict=True)]
    _refuse_all_empty(texts, fields)
    textual = [index for index, column in enumerate(columns) if _is_text(column.type)]
    if len(fields) > 1:
        for index in textual:
            _refuse_ambiguous(texts[index], index, textual, fields)
    pieces: list[pa.Array | str] = []
    for index, (field, text) in enumerate(zip(fields, texts, strict=True)):
        pieces += [f"{',' if index else ''}{field}:", _with_empty_parts(text)]
    return pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement=NULL_PART)


def _key_texts(column: pa.ChunkedArray, field: str, timestamps_as_text: bool) -> pa.Array:
    values = canonical_array(column)
    if pat.is_floating(values.type):
        _refuse_unstable(values, field)
    try:
        return timestamp_text(values) if timestamps_as_text and pat.is_timestamp(values.type) else java_text(values)
    except UnsupportedTypeError as error:
        raise RecordKeyError(f"the record key column {field!r} is {values.type}: {error.message}", column=field) from error


def _refuse_unstable(values: pa.Array, field: str) -> None:
    negative_zero = pc.and_(pc.equal(values, 0), pc.starts_with(values.cast(pa.string()), "-"))
    bad = pc.or_(pc.is_nan(values), negative_zero)
    if pc.any(bad).as_py():
        # Engines disagree on whether these equal themselves, or zero.
        raise _refused(bad, f"NaN or -0.0 in the record key column {field!r}", "replace these values")
    limit = _STABLE_BELOW[values.type]
    bad = pc.greater_equal(pc.abs(values), limit)
    if pc.any(bad).as_py():
        # Java before 19 prints more digits than needed here (JDK-4511638), so the key would depend on the JVM.
        what = f"a number of {limit:.0f} or more in the {values.type} record key column {field!r}, whose text differs between Java versions"
        raise _refused(bad, what, "cast the column to long, decimal or string")


def _refuse_all_empty(texts: Sequence[pa.Array], fields: Sequence[str]) -> None:
    if all(not text.null_count and not _has_empty(text) for text in texts):
        return
    bad = None
    for text in texts:
        empty = pc.or_kleene(pc.is_null(text), pc.equal(text, ""))
        bad = empty if bad is None else pc.and_(bad, empty)
    if pc.any(bad).as_py():
        raise _refused(bad, f"null or empty values in all record key columns {list(fields)}", "fill one of them, or filter these rows out")


def _refuse_ambiguous(text: pa.Array, index: int, textual: Sequence[int], fields: Sequence[str]) -> None:
    """Refuse values that hold a placeholder, or a separator of two fields next to which text may stand.

    A key is ambiguous only if a value holds the separator before or after its own field. Fields of other types never do, so fields outside
    the first and last text column are always unambiguous.
    """
    field = fields[index]
    placeholders = pc.is_in(text, value_set=pa.array([NULL_PART, EMPTY_PART]))
    if pc.any(placeholders).as_py():
        what = f"the text {NULL_PART!r} or {EMPTY_PART!r} in the record key column {field!r}, which Hudi writes for null and empty"
        raise _refused(placeholders, what, "replace these values")
    marks = [f",{fields[after]}:" for after in (index, index + 1) if textual[0] < after <= textual[-1]]
    for mark in marks:
        bad = pc.match_substring(text, mark)
        if pc.any(bad).as_py():
            what = f"the text {mark!r} in the record key column {field!r}, so that their key may equal another row's"
            raise _refused(bad, what, "replace it, or make the key of one column that holds both values")


def _with_empty_parts(text: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(text, ""), EMPTY_PART, text) if _has_empty(text) else text


def _has_empty(text: pa.Array) -> bool:
    return bool(pc.min(pc.binary_length(text)).as_py() == 0)


def _is_text(kind: pa.DataType) -> bool:
    if pat.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _refused(bad: pa.Array, what: str, remedy: str) -> RecordKeyError:
    flags = np.asarray(pc.fill_null(bad, False))
    rows = np.flatnonzero(flags)
    sample = ", ".join(str(row) for row in rows[:_SAMPLE]) + (", ..." if len(rows) > _SAMPLE else "")
    return RecordKeyError(f"{len(rows)} of {len(flags)} rows have {what} (row numbers {sample}); {remedy}", rows=len(rows))
