"""Which texts are values of an option, at the ends of what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lakehouse_engine.options.base import boolean, natural, natural_size, one_of, positive, positive_size, probability

MOST_INT = 2**31 - 1
TAKEN: list[tuple[Callable[[str], Any], dict[str, Any]]] = [
    (boolean, {"true": True, " FALSE ": False}),
    (positive, {"1": 1, str(MOST_INT): MOST_INT}),
    (natural, {"0": 0, "+7": 7, str(MOST_INT): MOST_INT}),
    (positive_size, {"1": 1, str(MOST_INT + 1): MOST_INT + 1}),
    (natural_size, {"0": 0, str(MOST_INT + 1): MOST_INT + 1}),
    (probability, {"0.5": 0.5, "1e-9": 1e-9, "0.999": 0.999}),
    (one_of("ONE", "TWO"), {" one ": "ONE", "Two": "TWO"}),
]
REFUSED: list[tuple[Callable[[str], Any], tuple[str, ...]]] = [
    (boolean, ("", "yes", "1")),
    (positive, ("0", "-1", str(MOST_INT + 1), "1.5", "one", "")),
    (natural, ("-1", str(MOST_INT + 1), "٣")),
    (positive_size, ("0", "-1", "1" * 19)),
    (natural_size, ("-1", "1" * 19)),
    (probability, ("0", "1", "-0.1", "1.1", "nan", "often")),
    (one_of("ONE", "TWO"), ("THREE", "", "ON")),
]


@pytest.mark.parametrize(("parse", "text", "value"), [(parse, *one) for parse, found in TAKEN for one in found.items()])
def test_a_text_that_is_a_value(parse: Callable[[str], Any], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(("parse", "text"), [(parse, text) for parse, texts in REFUSED for text in texts])
def test_a_text_that_is_no_value(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse(text)
