"""Assigns record keys to shares."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lakehouse_engine.index.bucket import BucketLayout
from lakehouse_engine.write.shares.exchange import shares_of
from lakehouse_engine.write.source import Rows


@dataclass(frozen=True, slots=True)
class Dealing:
    """`count` shares. With a `layout` all keys of a bucket go to one share, so that its file group is looked into once."""

    count: int
    layout: BucketLayout | None = None

    def shares(self, keys: pa.Array) -> Rows:
        """The share of each key. Raises as `BucketLayout.buckets`."""
        return shares_of(keys, self.count) if self.layout is None else self.layout.buckets(keys) % self.count
