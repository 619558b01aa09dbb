"""Values of an expression, or bounds that hold them where the value itself is not certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

GREATEST_CHARACTER = "\U0010ffff"
_BITS = {pa.int32(): 32, pa.date32(): 32, pa.int64(): 64}


@dataclass(frozen=True, slots=True)
class Bounded:
    """For each value, the least and the greatest that the expression may have there. They are one array where the value is certain."""

    least: pa.ChunkedArray
    greatest: pa.ChunkedArray

    @classmethod
    def exactly(cls, values: pa.ChunkedArray) -> Bounded:
        return cls(values, values)

    @property
    def is_exact(self) -> bool:
        return self.least is self.greatest


Compute = Callable[[pa.ChunkedArray], Bounded]


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of one column. `kind` is the type of its values.

    `grows`: what `compute` gives for the least and the greatest value of a column bounds the function over all that are between them.
    `is_exact`: each value is certain, so that it can be in a Bloom filter; texts that are not ASCII may be an exception, which `compute`
    says.
    """

    kind: pa.DataType
    compute: Compute
    grows: bool = False
    is_exact: bool = True


def anything(values: pa.ChunkedArray, kind: pa.DataType) -> Bounded:
    """Bounds of the type, one pair for each value; null for nulls."""
    if pat.is_string(kind):
        ends = [pa.scalar("", kind), pa.scalar(GREATEST_CHARACTER, kind)]
    else:
        half, number = 1 << (_BITS[kind] - 1), pa.int64() if _BITS[kind] == 64 else pa.int32()
        ends = [pa.scalar(end, number).cast(kind) for end in (-half, half - 1)]
    least, greatest = (pc.if_else(values.is_valid(), end, pa.scalar(None, kind)) for end in ends)
    return Bounded(least, greatest)
