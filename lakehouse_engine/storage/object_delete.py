"""Objects deleted, many at once, whether they are there or not."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
from obstore.exceptions import NotFoundError

from lakehouse_engine.storage.object_errors import says_no_bucket

_AT_ONCE = 8


def delete_objects(store: Any, keys: Sequence[str]) -> None:
    """Raises what the client raises, but for objects that are not there.

    S3 says nothing of those. Azure and Google do, and the client leaves the other keys, done or not, at the first of them: then each is
    deleted by a request of its own.
    """
    if len(keys) == 1:
        _delete(store, keys[0])
        return
    try:
        obstore.delete(store, list(keys))
        return
    except (FileNotFoundError, NotFoundError) as error:
        if says_no_bucket(error):
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
