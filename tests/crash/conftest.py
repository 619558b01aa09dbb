"""Half of the tests of this folder copy chunks of base files: whatever dies there leaves as little as where all rows are encoded."""

from tests.support.copying import copied

__all__ = ["copied"]
