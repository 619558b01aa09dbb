"""Positions of base rows in footers of data blocks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lakehouse_engine.errors import FormatError
from lakehouse_engine.format.log import positions as module
from lakehouse_engine.format.log.positions import KEY, NOT_IN_BASE, BaseRows, parse_positions, parse_rule, render_positions, render_rule

BASE = BaseRows("base.parquet", 123, "LATEST")


def footer(found: dict[str, str]) -> dict[bytes, bytes]:
    return {key.encode(): text.encode() for key, text in found.items()}


def changed(change: Callable[[dict[str, Any]], None], *, sealed: bool = True) -> dict[bytes, bytes]:
    """Footer of three positions with a change, which the checksum covers if `sealed`."""
    body = json.loads(render_positions(BASE, np.array([2, 0, 1], np.int32))[KEY])
    checksum = body.pop("checksum")
    change(body)
    return footer({KEY: json.dumps({**body, "checksum": module._checksum(body) if sealed else checksum})})


@pytest.mark.parametrize("found", [[], [0], [5, NOT_IN_BASE, 2**31 - 1, 256, 0], [NOT_IN_BASE]])
def test_positions_are_read_as_they_were_written(found: list[int]) -> None:
    written = np.array(found, np.int32)
    read = parse_positions(footer(render_positions(BASE, written)), len(found))
    assert read is not None
    assert read[0] == BASE
    assert read[1].dtype == np.int32
    assert np.array_equal(read[1], written)


def test_a_footer_without_them_or_of_a_later_form_has_none() -> None:
    assert parse_positions(None, 3) is None
    assert parse_positions({b"other": b"1"}, 3) is None
    assert parse_positions(changed(lambda body: body.update(version=2)), 3) is None


@pytest.mark.parametrize("rows", [2, 4])
def test_positions_of_another_number_of_rows_are_refused(rows: int) -> None:
    with pytest.raises(FormatError, match=f"are of 3 rows, and it has {rows}"):
        parse_positions(changed(lambda body: None), rows)


@pytest.mark.parametrize("name", ["name", "size", "rule", "rows", "positions"])
def test_what_the_checksum_does_not_cover_is_refused(name: str) -> None:
    with pytest.raises(FormatError, match="fail their checksum"):
        parse_positions(changed(lambda body: body.update({name: "other"}), sealed=False), 3)


def test_a_position_before_the_first_row_is_refused() -> None:
    with pytest.raises(FormatError, match="a position in a block's footer is -2"):
        parse_positions(footer(render_positions(BASE, np.array([0, -2], np.int32))), 2)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"version": 1}', b'{"version": 1, "checksum": 0, "rows": 3}'])
def test_another_text_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        parse_positions({KEY.encode(): text}, 3)


def test_a_rule_alone_is_read_as_it_was_written() -> None:
    assert parse_rule(footer(render_rule("LATEST"))) == "LATEST"
    assert parse_rule({}) is parse_rule(None) is None
