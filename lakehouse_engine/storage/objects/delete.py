"""Objects deleted, many at once, whether they are there or not."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
from obstore.exceptions import BaseError, NotFoundError

from lakehouse_engine.storage.objects.errors import is_unanswered, says_no_bucket

_AT_ONCE = 8


def delete_objects(store: Any, keys: Sequence[str]) -> None:
    """Raises what the client raises, but for objects that are not there.

    S3 says nothing of those. Azure and Google do, and the client leaves the other keys, done or not, at the first of them: then each is
    deleted by a request of its own. So it is where a request for many is not answered, which the client does not make again everywhere.
    """
    if len(keys) == 1:
        _delete(store, keys[0])
        return
    try:
        obstore.delete(store, list(keys))
        return
    except (BaseError, OSError) as error:
        is_missing = isinstance(error, (FileNotFoundError, NotFoundError))
        if says_no_bucket(error) or not (is_missing or is_unanswered(error)):
            raise
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        # Each is tried before the first error is raised.
        list(pool.map(lambda key: _delete(store, key), keys))


def _delete(store: Any, key: str) -> None:
    try:
        obstore.delete(store, key)
    except (FileNotFoundError, NotFoundError) as error:
        if says_no_bucket(error):
            raise
