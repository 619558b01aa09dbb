"""A storage in a bucket of S3, Google Cloud Storage or Azure through `obstore`, the crate that hudi-rs and delta-rs use.

Objects are made with `If-None-Match` and replaced with `If-Match` (`object_put`). There is no rename, and a directory exists as long as an
object below it does; Hadoop's directory markers are skipped.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any

import obstore
import pyarrow as pa
from obstore import exceptions
from obstore.store import from_url

from lakehouse_engine.errors import (
    OptionError,
    StorageError,
    StoredFileExistsError,
    StoredFileNotFoundError,
    UnknownOptionError,
    UnsafePathError,
)
from lakehouse_engine.storage.base import Listing, StoredFile, Tag
from lakehouse_engine.storage.locations import SCHEMES, place_of
from lakehouse_engine.storage.objects.delete import delete_objects
from lakehouse_engine.storage.objects.errors import as_object_errors
from lakehouse_engine.storage.objects.files import ObjectInput, ObjectOutput, OutputFile
from lakehouse_engine.storage.objects.put import Place, forget, remember, tag_of
from lakehouse_engine.storage.paths import check_relative, is_hidden_name, is_temporary_name

_CLIENT_KEYS = ("allow_http", "timeout", "connect_timeout", "proxy_url", "allow_invalid_certificates")
_ENVIRONMENT = {"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"}
_RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_stores: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
_guard = threading.Lock()
_forked = False
_from_url: Callable[..., Any] = from_url


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """Objects below `root` (`s3://bucket/prefix`). `options` are pairs of `storage_options`; they are never printed."""

    root: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def at(cls, location: str, options: Mapping[str, str] | None = None) -> ObjectStorage:
        """Raises `OptionError` for a location without a bucket and for unknown options."""
        scheme, bucket, prefix = place_of(location)
        if scheme not in SCHEMES or not bucket:
            raise OptionError(f"{location!r} names no bucket: write s3://bucket/path, gs://bucket/path or az://container/path")
        below = check_relative(prefix.strip("/"))
        given = tuple(sorted((str(key).lower(), str(value)) for key, value in (options or {}).items() if value is not None))
        found = cls(f"{SCHEMES[scheme]}://{bucket}" + (f"/{below}" if below else ""), given)
        found._store()
        return found

    def uri(self, path: str = "") -> str:
        relative = check_relative(path)
        return f"{self.root}/{relative}" if relative else self.root

    def local_path(self, path: str = "") -> str | None:
        check_relative(path)
        return None

    def list(self, path: str = "") -> Listing:
        found = self._children(path)
        folders = {name: StoredFile(name, 0, 0, is_directory=True) for name in map(self._relative, found["common_prefixes"])}
        files = {entry.path: entry for entry in map(self._file, found["objects"]) if not is_hidden_name(entry.name)}
        # A marker of a directory has the directory's name.
        kept = [entry for name, entry in files.items() if name not in folders and name != check_relative(path)]
        return sorted((*folders.values(), *kept), key=lambda entry: entry.path)

    def walk(self, path: str = "") -> Listing:
        return _shown(list(self._below(path)))

    def walk_up_to(self, path: str, most: int) -> Listing | None:
        found = list(islice(self._below(path), most + 1))
        return None if len(found) > most else _shown(found)

    def unpublished(self, path: str = "") -> Listing:
        """Files under temporary names; an incomplete upload is not visible."""
        found = map(self._file, self._children(path)["objects"])
        return sorted((one for one in found if is_temporary_name(one.name)), key=lambda one: one.path)

    def head(self, path: str) -> StoredFile | None:
        relative = check_relative(path)
        found = self._object(path) if relative else None
        if found is not None:
            return found
        below = next(iter(self._below(path)), None)
        return None if below is None else StoredFile(relative, 0, below.modified_ms, is_directory=True)

    def has_object(self, path: str) -> bool:
        return self._object(path) is not None

    def read(self, path: str) -> bytes:
        with as_object_errors("read", path, self.root):
            store, key = self._store(), self._key(path)
            found = obstore.get(store, key)
            content = bytes(found.bytes())
        remember(store, key, tag_of(found.meta))
        return content

    def create(self, path: str, data: bytes) -> None:
        place = self._place(path)
        done, tag = place.put_if(data, None, "create")
        if not done:
            raise StoredFileExistsError(f"cannot create {path!r}: it is there already", path=path, root=self.root)
        if tag is not None:
            remember(place.store, place.key, tag)

    def overwrite(self, path: str, data: bytes) -> None:
        """Like `Storage.overwrite`: replaces the current content, again if another writer was faster."""
        self._place(path).put_over(data)

    def read_tagged(self, path: str) -> tuple[bytes, Tag] | None:
        """Content and tag of an object; None if it does not exist."""
        try:
            with as_object_errors("read", path, self.root):
                found = obstore.get(self._store(), self._key(path))
                return bytes(found.bytes()), tag_of(found.meta)
        except StoredFileNotFoundError:
            return None

    def put_tagged(self, path: str, data: bytes, tag: Tag | None) -> Tag | None:
        """Tag of the new content; None, with nothing changed, if the content with `tag` is gone (`tag` None: if any exists)."""
        done, found = self._place(path).put_if(data, tag, "write")
        return found if done else None

    def delete(self, path: str) -> bool:
        key = self._file_key(path)
        forget(self._store(), [key])
        try:
            with as_object_errors("delete", path, self.root):
                obstore.head(self._store(), key)
                obstore.delete(self._store(), key)
        except StoredFileNotFoundError:
            return False
        return True

    def delete_tree(self, path: str) -> None:
        self._file_key(path)
        below = [entry.path for entry in self._below(path)]
        # Also the directory's own marker, or a file of that name. Stores other than S3 report absent ones, and may skip the rest.
        for paths in [[*below, path]] if self._scheme == "s3" else [below, [path]]:
            self.delete_all(paths)

    def delete_empty(self, path: str) -> bool:
        """Like `Storage.delete_empty`; a directory is not an object, so only markers are removed."""
        self._file_key(path)
        below = list(self._below(path))
        if _shown(below) or self.has_object(path):
            return False
        self.delete_all(entry.path for entry in below)
        return True

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete objects, many per request if the store can."""
        keys = [self._file_key(path) for path in paths]
        if keys:
            forget(self._store(), keys)
            with as_object_errors("delete", f"{len(keys)} objects", self.root):
                delete_objects(self._store(), keys)

    def copy_object(self, path: str, original: str) -> bool:
        scheme, bucket, source = place_of(original)
        if (scheme, bucket) != place_of(self.root)[:2]:
            return False
        key = self._file_key(path)
        forget(self._store(), [key])
        with as_object_errors("copy", path, self.root):
            obstore.copy(self._store(), source, key)
        return True

    def rename_tree(self, source: str, target: str) -> None:
        raise _no_rename(self.root, source)

    def exchange_trees(self, first: str, second: str) -> None:
        raise _no_rename(self.root, first)

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(ObjectInput(self._store(), self._key(path), path, self.root), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        """Like `Storage.open_output`; after an exception, or without `close`, no object exists."""
        return OutputFile.over(ObjectOutput(self._store(), self._file_key(path), path, self.root))

    def link(self, path: str, original: str) -> bool:
        self._file_key(path)
        return False

    def sync(self, path: str) -> None:
        """Does nothing: objects are durable once they exist."""
        check_relative(path)

    def _store(self) -> Any:
        scheme, bucket, _ = place_of(self.root)
        return _opened(f"{scheme}://{bucket}", self.options)

    @property
    def _scheme(self) -> str:
        return place_of(self.root)[0]

    @property
    def _prefix(self) -> str:
        return place_of(self.root)[2]

    def _key(self, path: str) -> str:
        relative = check_relative(path)
        if not relative.isprintable() and any(ord(one) < 32 or ord(one) == 127 for one in relative):
            raise UnsafePathError(f"the path {path!r} has a control character, which no name in an object store may have", root=self.root)
        key = "/".join(part for part in (self._prefix, relative) if part)
        if self._scheme == "az" and ("\\" in key or "./" in f"{key}/"):
            raise UnsafePathError(
                f"the path {key!r} has a backslash, or a part that ends with a dot: to Azure that is another name; choose one without",
                root=self.root,
            )
        return key

    def _file_key(self, path: str) -> str:
        if not check_relative(path):
            raise UnsafePathError("the root of a storage is no file", root=self.root)
        return self._key(path)

    def _relative(self, key: str) -> str:
        return key.removeprefix(f"{self._prefix}/") if self._prefix else key

    def _file(self, meta: Mapping[str, Any]) -> StoredFile:
        modified = int(meta["last_modified"].timestamp() * 1000)
        # Azure quotes tags except in listings.
        tag = (meta.get("e_tag") or "").strip('"') or None
        return StoredFile(self._relative(meta["path"]), int(meta["size"]), modified, tag=tag)

    def _object(self, path: str) -> StoredFile | None:
        try:
            with as_object_errors("look at", path, self.root):
                return self._file(obstore.head(self._store(), self._key(path)))
        except StoredFileNotFoundError:
            return None

    def _children(self, path: str) -> Any:
        with as_object_errors("list", path, self.root):
            return obstore.list_with_delimiter(self._store(), prefix=self._key(path) or None)

    def _below(self, path: str) -> Iterator[StoredFile]:
        prefix = self._key(path)
        with as_object_errors("list", path, self.root):
            for page in obstore.list(self._store(), prefix=prefix or None, chunk_size=1000):
                yield from (self._file(meta) for meta in page if meta["path"] != prefix)

    def _place(self, path: str) -> Place:
        key = self._file_key(path)
        return Place(self._store(), key, path, self.root)


def _after_fork() -> None:
    global _guard, _forked
    _guard, _forked = threading.Lock(), _forked or bool(_stores)


os.register_at_fork(after_in_child=_after_fork)


def _opened(location: str, options: tuple[tuple[str, str], ...]) -> Any:
    """Client of a bucket. Raises `StorageError` in a process forked from one that had clients: their threads are gone, and every request
    would hang.
    """
    key = (location, options)
    with _guard:
        if _forked:
            raise StorageError(
                f"{location} cannot be used: this process was forked from one that had used an object store; start it anew"
                " (multiprocessing: the method 'spawn')"
            )
        if key not in _stores:
            _stores[key] = _open(location, dict(options))
        return _stores[key]


def _open(location: str, options: dict[str, str]) -> Any:
    # If the client gets any of these, it looks for none of the others in the environment.
    prefix = _ENVIRONMENT[location.partition(":")[0]]
    found = {name: options.pop(name, None) or os.environ.get(prefix + name.upper()) for name in _CLIENT_KEYS}
    client: dict[str, Any] = {name: value for name, value in found.items() if value}
    for name in ("allow_http", "allow_invalid_certificates"):
        if name in client:
            client[name] = _flag(name, client[name])
    # A server addressed by its own name mostly has buckets in the path.
    own_name = location.startswith("s3:") and ("endpoint" in options or "aws_endpoint" in options)
    extra: dict[str, Any] = {"virtual_hosted_style_request": "false"} if own_name else {}
    try:
        return _from_url(location, config={**extra, **options}, client_options=client, retry_config=_RETRIES)
    except exceptions.UnknownConfigurationKeyError:
        unknown = next((name for name in options if not _is_known(location, name)), "?")
        raise UnknownOptionError(f"storage_options has {unknown!r}, which {location.partition(':')[0]} storages do not know") from None
    except (exceptions.BaseError, ValueError) as error:
        raise OptionError(f"storage_options of {location} cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """What is wrong with options, without their values, which the client repeats."""
    if "MissingAccount" in str(error):
        return "no account is named; set 'account_name' (or AZURE_STORAGE_ACCOUNT_NAME)"
    return type(error).__name__


@functools.cache
def _is_known(location: str, name: str) -> bool:
    try:
        _from_url(location, config={name: "x"})
    except exceptions.UnknownConfigurationKeyError:
        return False
    except (exceptions.BaseError, ValueError):
        return True
    return True


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise OptionError(f"{name} of storage_options is true or false, not {text!r}")
    return text.lower() == "true"


def _shown(found: Listing) -> Listing:
    """Files below a path, sorted, without hidden names and directory markers."""
    folders = {name for entry in found for name in _parents(entry.path)}
    kept = (entry for entry in found if not is_hidden_name(entry.name) and entry.path not in folders)
    return sorted(kept, key=lambda entry: entry.path)


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _no_rename(root: str, path: str) -> StorageError:
    return StorageError(f"{path!r} cannot be moved in {root}: an object store has no rename; make it anew under the other name", path=path)
