"""What a process remembers, and forgets."""

from __future__ import annotations

from lakehouse_engine.cache import BoundedCache


def test_what_was_used_longest_ago_drops_out() -> None:
    cache: BoundedCache[str] = BoundedCache(4, len)
    for key in ("a", "b", "a"):
        cache.find(key, lambda: "xx")
    cache.put("c", "xx")
    assert [cache.get(key) for key in "abc"] == ["xx", None, "xx"]
    assert cache.size == 4


def test_a_value_that_alone_weighs_too_much_takes_no_others_place() -> None:
    cache: BoundedCache[str] = BoundedCache(4, len)
    cache.put("a", "xx")
    assert cache.find("b", lambda: "xxxxx") == "xxxxx"
    assert [cache.get(key) for key in "ab"] == ["xx", None]
    assert cache.size == 2
