from __future__ import annotations

import pytest

from lakehouse_engine.errors import OptionError
from lakehouse_engine.sorting.layout import SortLayout


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("linear", SortLayout.LINEAR),
        ("LINEAR", SortLayout.LINEAR),
        ("z-order", SortLayout.Z_ORDER),
        ("z_order", SortLayout.Z_ORDER),
        ("ZORDER", SortLayout.Z_ORDER),
        (" Hilbert ", SortLayout.HILBERT),
    ],
)
def test_names_of_hudi_and_of_users_are_known(text: str, layout: SortLayout) -> None:
    assert SortLayout.parse(text) is layout


@pytest.mark.parametrize("text", ["", "z", "zorder2", "random"])
def test_other_names_are_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(OptionError, match=r"expected linear, z-order \(z_order\) or hilbert"):
        SortLayout.parse(text)
