"""A new table in a bucket whose last few small objects are held back until it is complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lakehouse_engine.errors import StoredFileExistsError, StoredFileNotFoundError
from lakehouse_engine.storage.base import StoredFile
from lakehouse_engine.storage.objects.store import ObjectStorage
from lakehouse_engine.storage.paths import check_relative


@dataclass(frozen=True, slots=True)
class HeldStorage(ObjectStorage):
    """Keeps the objects `held_back` in memory. Only readers of this storage find them, and no listing shows them.

    For one thread. A copy sent to another process carries what is held by then.
    """

    held_back: frozenset[str] = frozenset()
    held: dict[str, bytes] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, storage: ObjectStorage, held_back: Iterable[str]) -> HeldStorage:
        return cls(storage.root, storage.options, frozenset(held_back))

    def head(self, path: str) -> StoredFile | None:
        relative = check_relative(path)
        if relative not in self.held_back:
            return ObjectStorage.head(self, path)
        data = self.held.get(relative)
        return None if data is None else StoredFile(relative, len(data), 0)

    def has_object(self, path: str) -> bool:
        relative = check_relative(path)
        return relative in self.held if relative in self.held_back else ObjectStorage.has_object(self, path)

    def read(self, path: str) -> bytes:
        relative = check_relative(path)
        if relative not in self.held_back:
            return ObjectStorage.read(self, path)
        if relative not in self.held:
            raise StoredFileNotFoundError(f"cannot read {path!r}: it is not there", path=path, root=self.root)
        return self.held[relative]

    def create(self, path: str, data: bytes) -> None:
        relative = check_relative(path)
        if relative not in self.held_back:
            ObjectStorage.create(self, path, data)
            return
        if relative in self.held:
            raise StoredFileExistsError(f"cannot create {path!r}: it is there already", path=path, root=self.root)
        self.held[relative] = bytes(data)

    def overwrite(self, path: str, data: bytes) -> None:
        relative = check_relative(path)
        if relative in self.held_back:
            self.held[relative] = bytes(data)
        else:
            ObjectStorage.overwrite(self, path, data)

    def delete(self, path: str) -> bool:
        relative = check_relative(path)
        return self.held.pop(relative, None) is not None if relative in self.held_back else ObjectStorage.delete(self, path)
