"""Ways in which a file is damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.support.depth import IS_FULL

FLIPS = 50 if IS_FULL else 1
WAYS = ("flip", "delete", "halve", "shorten", "empty")


def damages(data: bytes, way: str, dice: random.Random, flips: int = FLIPS) -> Iterator[bytes | None]:
    """What is left of a file; None: nothing. `flips`: bits that are changed, one at a time."""
    if way == "flip":
        for bit in dice.sample(range(len(data) * 8), min(flips, len(data) * 8)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            yield bytes(flipped)
    else:
        yield {"delete": None, "halve": data[: len(data) // 2], "shorten": data[:-1], "empty": b""}[way]
