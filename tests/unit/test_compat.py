from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from lakehouse_engine.compat import cached_property


class Slow:
    def __init__(self, other: threading.Event, mine: threading.Event) -> None:
        self.other, self.mine, self.times = other, mine, 0

    @cached_property
    def value(self) -> int:
        """Ends once that of the other instance has begun."""
        self.times += 1
        self.mine.set()
        assert self.other.wait(30)
        return 7


def test_cached_properties_of_two_instances_are_computed_side_by_side_and_once() -> None:
    first, second = threading.Event(), threading.Event()
    slow = [Slow(first, second), Slow(second, first)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda one: one.value, slow)) == [7, 7]
    assert [one.value for one in slow] == [7, 7]
    assert [one.times for one in slow] == [1, 1]
