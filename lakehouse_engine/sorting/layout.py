"""Orders in which rows can be laid out in files."""

from __future__ import annotations

from lakehouse_engine.compat import StrEnum
from lakehouse_engine.errors import OptionError


class SortLayout(StrEnum):
    """How rows are ordered by several columns. The values are those of `hoodie.layout.optimize.strategy`.

    LINEAR: by the first column, then by the second within equal values, and so on. Z_ORDER and HILBERT: along a space-filling curve, which
    keeps rows that are close in all columns close together.
    """

    LINEAR = "linear"
    Z_ORDER = "z-order"
    HILBERT = "hilbert"

    @classmethod
    def parse(cls, text: str) -> SortLayout:
        """Layout for a text in any case: `linear`, `z-order` (also `z_order`, `zorder`) or `hilbert`.

        Source: `HoodieClusteringConfig.resolveLayoutOptimizationStrategy`, which accepts `z-order` and the names of its constants. Raises
        `OptionError` for another text.
        """
        word = text.strip().lower().replace("_", "-")
        try:
            return cls("z-order" if word == "zorder" else word)
        except ValueError:
            raise OptionError(f"rows cannot be laid out by {text!r}: expected linear, z-order (z_order) or hilbert") from None
