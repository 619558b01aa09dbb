"""Row positions in the Parquet footer of a data block: which rows of the base file its rows replace (docs/adr/0040).

A JSON object under a key of its own, which other readers ignore. It has the base file's name and size, the rule by which rows replace its
rows, and the row numbers in base 64: 32 bits each, -1 for a key that the base file does not have; stored as the lowest byte of all of them,
then the next byte, and so on, compressed by Zstandard. A CRC-32 covers all of this.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakehouse_engine.errors import FormatError

Positions = npt.NDArray[np.int32]

KEY = "lakehouse.base.positions"
RULE_KEY = "lakehouse.base.rule"
"""Footer key of the rule alone, for positions in the block's header (table versions 8 and 9)."""
NOT_IN_BASE = -1
MOST_ROWS = 1_000_000
"""Blocks with more rows get no positions: readers hold a footer in memory, and some reject large ones."""

_VERSION = 1
_WIDTH = 4


@dataclass(frozen=True, slots=True)
class BaseRows:
    """The base file, by `name` and `size`, and the `rule` by which a row of the block replaces its base row, if it has one."""

    name: str
    size: int
    rule: str


def render_positions(base: BaseRows, positions: Positions) -> dict[str, str]:
    """Footer entry for a block whose row i has the key of row `positions[i]` of the base file, and of no other row."""
    planes = np.ascontiguousarray(positions.astype("<i4").view(np.uint8).reshape(-1, _WIDTH).T)
    packed = base64.b64encode(pa.compress(planes.tobytes(), codec="zstd", asbytes=True)).decode()
    body = {"version": _VERSION, "size": base.size, "name": base.name, "rule": base.rule, "rows": len(positions), "positions": packed}
    return {KEY: json.dumps({**body, "checksum": _checksum(body)})}


def render_rule(rule: str) -> dict[str, str]:
    """Footer entry for a block whose header has positions: the rule by which its rows replace base rows."""
    return {RULE_KEY: rule}


def parse_rule(footer: Mapping[bytes, bytes] | None) -> str | None:
    """The rule that `render_rule` wrote; None if there is none."""
    text = (footer or {}).get(RULE_KEY.encode())
    return None if text is None else text.decode("utf-8", "replace")


def parse_positions(footer: Mapping[bytes, bytes] | None, rows: int) -> tuple[BaseRows, Positions] | None:
    """Positions in the footer of a block with `rows` rows; None if the footer has none, or has them in a later version's form.

    Raises `FormatError` for a text that `render_positions` does not produce.
    """
    text = (footer or {}).get(KEY.encode())
    if text is None:
        return None
    try:
        body = json.loads(text)
        if body["version"] != _VERSION:
            return None
        if body.pop("checksum") != _checksum(body):
            raise FormatError("the positions in a block's footer fail their checksum")
        if body["rows"] != rows:
            raise FormatError(f"the positions in a block's footer are of {body['rows']} rows, and it has {rows}")
        planes = pa.decompress(base64.b64decode(body["positions"], validate=True), rows * _WIDTH, codec="zstd", asbytes=True)
        found = np.ascontiguousarray(np.frombuffer(planes, np.uint8).reshape(_WIDTH, rows).T).view("<i4").ravel()
        if len(found) and found.min() < NOT_IN_BASE:
            raise FormatError(f"a position in a block's footer is {found.min()}")
        return BaseRows(str(body["name"]), int(body["size"]), str(body["rule"])), found.astype(np.int32)
    except (KeyError, TypeError, ValueError, OSError, binascii.Error, pa.ArrowException) as error:
        raise FormatError(f"the positions in a block's footer do not parse: {error!r}") from error


def _checksum(body: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())
