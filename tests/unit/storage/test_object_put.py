"""What becomes of a put, over obstore's own store in memory: each of its requests is met by what a store may answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError
from obstore.store import MemoryStore

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.objects import put as object_put
from lakehouse_engine.storage.objects.errors import may_be_done
from lakehouse_engine.storage.objects.put import Place

UNAVAILABLE = "Server returned non-2xx status code: 503 Service Unavailable: "
Answer = Callable[[Callable[[], Any]], Any]
"""Takes the request; what comes back of it."""


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(object_put, "_PAUSES", (0.0, 0.0, 0.0, 0.0))
    return Place(MemoryStore(), "t/file", "file", "s3://bucket/t")


def content(place: Place) -> bytes:
    return bytes(obstore.get(place.store, place.key).bytes())


def lost(request: Callable[[], Any]) -> Any:
    raise GenericError(UNAVAILABLE)


def lost_after(request: Callable[[], Any]) -> Any:
    request()
    raise GenericError(UNAVAILABLE)


def denied(request: Callable[[], Any]) -> Any:
    raise PermissionDeniedError("403 Forbidden")


def conflict(request: Callable[[], Any]) -> Any:
    raise AlreadyExistsError("409 Conflict")


def answer(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> list[Any]:
    """Each put meets the next of them, and those after the last are let through; the modes of all that are made."""
    modes, left, put = list[Any](), list(answers), obstore.put

    def answered(*arguments: Any, **named: Any) -> Any:
        modes.append(named["mode"])
        made = left.pop(0) if left else lambda request: request()
        return made(lambda: put(*arguments, **named))

    monkeypatch.setattr(obstore, "put", answered)
    return modes


@pytest.mark.parametrize("answers", [(lost,), (lost_after,), (conflict, lost, conflict), (lost, lost, lost, lost_after)])
def test_a_put_is_made_again_until_it_is_known(monkeypatch: pytest.MonkeyPatch, place: Place, answers: tuple[Answer, ...]) -> None:
    modes = answer(monkeypatch, *answers)
    done, tag = place.put_if(b"1", None, "create")
    assert done
    assert (content(place), set(modes)) == (b"1", {"create"})
    assert tag == object_put.tag_of(obstore.head(place.store, place.key))
    assert place.put_if(b"2", None, "create") == (False, tag)
    assert content(place) == b"1"


@pytest.mark.parametrize(
    ("answers", "message"),
    [((lost,) * 4, "asks for fewer requests"), ((conflict,) * 4, "at the same time"), ((denied,), "access is denied")],
)
def test_what_cannot_be_told_is_an_error(
    monkeypatch: pytest.MonkeyPatch, place: Place, answers: tuple[Answer, ...], message: str
) -> None:
    modes = answer(monkeypatch, *answers)
    with pytest.raises(StorageError, match=message) as caught:
        place.put_if(b"1", None, "create")
    assert caught.value.context["path"] == "file"
    assert len(modes) == len(answers)


def test_a_lost_request_that_is_done_when_another_one_was_faster_changes_nothing(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    place.put_over(b"0")
    late = list[Callable[[], Any]]()

    def another_is_faster(request: Callable[[], Any]) -> Any:
        late.append(request)
        obstore.put(place.store, place.key, b"of another", mode="overwrite")
        raise GenericError(UNAVAILABLE)

    modes = answer(monkeypatch, another_is_faster)
    place.put_over(b"1")
    assert content(place) == b"1"
    # That over the first content need not be made again once it cannot be done any more.
    assert modes[1] == "overwrite"
    assert [set(modes[0]) == set(modes[2]), modes[0] == modes[2], len(modes)] == [True, False, 3]
    with pytest.raises(Exception, match="does not match"):
        late[0]()
    assert content(place) == b"1"


def test_an_object_that_others_replace_for_ever_is_an_error(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(object_put, "_OVERTAKEN", 3)
    put = obstore.put

    def overtaken(request: Callable[[], Any]) -> Any:
        put(place.store, place.key, b"of another", mode="overwrite")
        return request()

    place.put_over(b"0")
    modes = answer(monkeypatch, *[overtaken] * 100)
    with pytest.raises(StorageError, match="again and again"):
        place.put_over(b"1")
    assert len(modes) == 3
    assert content(place) == b"of another"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (GenericError(UNAVAILABLE), True),
        (GenericError("Server returned non-2xx status code: 500 Internal Server Error"), True),
        (GenericError("Server returned non-2xx status code: 409 Conflict"), True),
        (GenericError("HTTP error: error sending request: operation timed out"), True),
        (ConnectionResetError("reset"), True),
        (GenericError("Server returned non-2xx status code: 400 Bad Request: <Code>InvalidArgument</Code>"), False),
        (GenericError("Server returned non-2xx status code: 507 Insufficient Storage"), False),
        (GenericError("Received redirect without LOCATION, this normally indicates an incorrectly configured region"), False),
        (PermissionDeniedError("403 Forbidden"), False),
        (FileNotFoundError("no such bucket"), False),
    ],
)
def test_which_answers_leave_open_what_was_done(error: BaseException, expected: bool) -> None:
    assert may_be_done(error) is expected


def test_a_kept_value_that_is_taken_weighs_nothing_any_more() -> None:
    cache = BoundedCache[bytes](10, len)
    cache.put("a", b"1234567")
    assert (cache.pop("a"), cache.pop("a"), cache.size) == (b"1234567", None, 0)
    cache.put("b", b"1234567890")
    assert cache.get("b") == b"1234567890"
