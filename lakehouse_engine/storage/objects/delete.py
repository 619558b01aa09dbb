"""Deletes many objects at once, whether they exist or not."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import obstore
from obstore.exceptions import BaseError, NotFoundError

from lakehouse_engine.storage.objects.errors import is_unanswered, says_no_bucket

_AT_ONCE = 8


def delete_objects(store: Any, keys: Sequence[str]) -> None:
    """Raises what the client raises, except for absent objects.

    S3 does not report those. Azure and Google do, and the client then stops with some keys undone, so each is deleted by its own request.
    The same happens when a batch request gets no answer, which the client does not repeat on every store.
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
        # All are tried before the first error is raised.
        list(pool.map(lambda key: _delete(store, key), keys))


def _delete(store: Any, key: str) -> None:
    try:
        obstore.delete(store, key)
    except (FileNotFoundError, NotFoundError) as error:
        if says_no_bucket(error):
            raise
