"""Puts small objects whole, each over one known content, so that the outcome is known even if the answer is lost.

Each put carries a token in the object's metadata. A put without an answer, or with 5xx, is repeated with the same condition, so it cannot
be done twice, and a late one finds its condition broken. If the condition is broken, the token of the current object says whether it was
this very put. S3 answers 409 to concurrent conditional requests, of which none need have been done; the current object tells that apart:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError

from lakehouse_engine.cache import BoundedCache
from lakehouse_engine.errors import StorageError
from lakehouse_engine.storage.base import Tag
from lakehouse_engine.storage.objects.errors import may_be_done, storage_error

logger = logging.getLogger(__name__)

TOKEN = "lakehousetoken"
"""A metadata name that all stores and proxies accept: Azure takes no hyphens, others drop underscores."""
_PAUSES = (0.0, 0.2, 0.4, 0.8)
"""Seconds before each request of one put; the client repeats requests as well."""
_PATIENCE = 60.0
"""Seconds after which no further request starts; the client itself waits as long for one."""
_OVERTAKEN = 20
"""How often others may replace an object while it is being overwritten."""
_KNOWN: BoundedCache[Tag] = BoundedCache(4096)
"""Tags that this process saw last, by client (clients live for ever) and key: they save one request per overwrite."""


def tag_of(meta: Mapping[str, Any]) -> Tag:
    """Version of an object: S3 and Azure use `e_tag`, Google uses `version`."""
    return {name: str(meta[name]) for name in ("e_tag", "version") if meta.get(name) is not None}


def remember(store: Any, key: str, tag: Tag) -> None:
    """Remember that an overwrite may start from this content; it need not be the latest."""
    forget(store, [key])
    _KNOWN.put((id(store), key), tag)


def forget(store: Any, keys: Iterable[str]) -> None:
    """Forget the known tags of objects."""
    for key in keys:
        _KNOWN.pop((id(store), key))


@dataclass(frozen=True, slots=True)
class Place:
    """Destination of an object: `key` of the client `store`, called `path` of the storage at `root` in messages."""

    store: Any
    key: str
    path: str
    root: str

    def put_over(self, data: bytes) -> None:
        """Make or replace the object. Each request replaces one content; a late one changes nothing.

        Raises `StorageError` as `put_if`, and if others keep replacing it.
        """
        tag = _KNOWN.pop((id(self.store), self.key))
        for _ in range(_OVERTAKEN):
            done, tag = self.put_if(data, tag, "write")
            if done and tag is not None:
                remember(self.store, self.key, tag)
                return
        raise self._contested("write")

    def put_if(self, data: bytes, tag: Tag | None, what: str) -> tuple[bool, Tag | None]:
        """Replace the content with `tag` (None: nothing exists). Returns whether that happened, and the current tag, another writer's if it
        did not (None: nothing exists). `what` is the verb of messages.

        Raises `StorageError` if the store refuses, and `UnansweredError` if the outcome is unknown: the object may exist or still arrive.
        """
        token, until = uuid.uuid4().hex, time.monotonic() + _PATIENCE
        failure: BaseException | None = None
        unanswered = False
        for pause in _PAUSES:
            if pause and time.monotonic() > until:
                break
            time.sleep(pause)
            try:
                return True, self._put(data, tag, token)
            except (BaseError, OSError) as error:
                answer = error
            refused = _is_refused(answer, tag)
            failure = None if refused else answer
            unanswered = unanswered or may_be_done(answer)
            try:
                found = self._found()
            except (BaseError, OSError) as error:
                failure = failure or error
            else:
                if found is not None and found[0] == token:
                    return True, found[1]
                if (refused or may_be_done(answer)) and not _is_as_before(found, tag):
                    return False, None if found is None else found[1]
            if not refused and not may_be_done(answer):
                break
        if failure is None:
            raise self._contested(what)
        raise storage_error(what, self.path, self.root, failure, unanswered=unanswered) from None

    def _put(self, data: bytes, tag: Tag | None, token: str) -> Tag:
        mode: Any = "create" if tag is None else dict(tag)
        return tag_of(obstore.put(self.store, self.key, bytes(data), attributes={TOKEN: token}, mode=mode, use_multipart=False))

    def has(self, token: str) -> bool:
        """True if the current object was put with that token; False if the store does not say."""
        try:
            found = self._found()
        except (BaseError, OSError) as error:
            logger.warning("whether it was written cannot be told: %s", storage_error("look at", self.path, self.root, error))
            return False
        return found is not None and found[0] == token

    def _found(self) -> tuple[str, Tag] | None:
        """Token and tag of the current object."""
        try:
            found = obstore.get(self.store, self.key, options={"head": True})
        except (FileNotFoundError, NotFoundError):
            return None
        return str(found.attributes.get(TOKEN, "")), tag_of(found.meta)

    def _contested(self, what: str) -> StorageError:
        message = f"cannot {what} {self.path!r} in {self.root}: others change it at the same time, again and again; try again"
        return StorageError(message, path=self.path, root=self.root)


def _is_refused(answer: BaseException, tag: Tag | None) -> bool:
    """True if the condition is broken, or the store handles several such requests at once (409)."""
    return isinstance(answer, (AlreadyExistsError, PreconditionError)) or (
        tag is not None and isinstance(answer, (FileNotFoundError, NotFoundError))
    )


def _is_as_before(found: tuple[str, Tag] | None, tag: Tag | None) -> bool:
    """True if the condition of a put over `tag` still holds."""
    if found is None or tag is None:
        return found is None and tag is None
    return all(found[1].get(name, value) == value for name, value in tag.items())
