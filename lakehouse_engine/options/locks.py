"""Options of the table's lock, and of how writers show that they are alive.

They belong to the table, not to one write: a writer with another lock would have none. `timeline/locks/agreement.py` keeps them equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakehouse_engine.errors import LockError, OptionError
from lakehouse_engine.options.base import Option, natural, one_of, positive

SINGLE_WRITER, OPTIMISTIC = "SINGLE_WRITER", "OPTIMISTIC_CONCURRENCY_CONTROL"
KERNEL, IN_PROCESS, HUDI_FILE = "flock", "InProcessLockProvider", "FileSystemBasedLockProvider"
STORAGE = "StorageBasedLockProvider"
PROVIDERS = "org.apache.hudi.client.transaction.lock."
"""The package of Hudi's lock providers."""


def _perhaps(text: str) -> int | None:
    return natural(text)


CONCURRENCY_MODE = Option(
    "hoodie.write.concurrency.mode",
    one_of(SINGLE_WRITER, OPTIMISTIC),
    SINGLE_WRITER,
    "OPTIMISTIC_CONCURRENCY_CONTROL: Hudi's writers write the table too. A write goes on beside those that are alive, under the lock that"
    " hoodie.write.lock.provider names.",
)
LOCK_PROVIDER = Option(
    "hoodie.write.lock.provider",
    str,
    "",
    "What keeps writers apart. By default the kernel's lock on a file (`flock`; in the memory of this process for tables in memory),"
    " and in object stores org.apache.hudi.client.transaction.lock.StorageBasedLockProvider, which is always taken there;"
    " org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider keeps Hudi's writers out too; `flock` by name, and"
    " InProcessLockProvider, say that all writers are on one machine or in one process, where the file system is not known to keep a lock.",
)
FILE_LOCK_DIRECTORY = Option(
    "hoodie.write.lock.filesystem.path",
    str,
    "",
    "Directory of the lock file of FileSystemBasedLockProvider; by default the table's .hoodie.",
)
FILE_LOCK_EXPIRE = Option(
    "hoodie.write.lock.filesystem.expire",
    natural,
    0,
    "Minutes after which a lock file of FileSystemBasedLockProvider that nobody touched is taken over; 0: never.",
)
LOCK_PAUSE_MS: Option[int | None] = Option(
    "hoodie.write.lock.client.wait_time_ms_between_retry",
    _perhaps,
    None,
    "Milliseconds between two tries to take the lock file of FileSystemBasedLockProvider; by default 5 to 100, growing.",
)
LOCK_RETRIES: Option[int | None] = Option(
    "hoodie.write.lock.client.num_retries",
    _perhaps,
    None,
    "Tries to take the lock file of FileSystemBasedLockProvider after the first; by default as many as there is time for"
    " (hoodie.write.lock.wait_time_ms).",
)
LOCK_VALIDITY = Option(
    "hoodie.write.lock.storage.validity.timeout.secs",
    positive,
    300,
    "Seconds for which StorageBasedLockProvider, the lock of tables in object stores, is taken at a time.",
)
LOCK_RENEWAL = Option(
    "hoodie.write.lock.storage.renew.interval.secs",
    positive,
    30,
    "Seconds after which a holder renews StorageBasedLockProvider's lock; at most a tenth of its validity, as in Hudi.",
)
FAILED_WRITES = Option(
    "hoodie.clean.failed.writes.policy",
    one_of("EAGER", "LAZY"),
    "",
    "When dead writes are taken back. Either way the next write does it, and never to a writer that is alive; EAGER is refused with"
    " optimistic concurrency control, as in Hudi.",
    ("hoodie.cleaner.policy.failed.writes",),
)
HEARTBEAT_MS = Option(
    "hoodie.client.heartbeat.interval_in_ms", positive, 60_000, "Milliseconds between two signs of life of a writer."
)
HEARTBEAT_MISSES = Option(
    "hoodie.client.heartbeat.tolerable.misses", positive, 2, "Signs of life after which, if they are missed, a writer counts as dead."
)
TABLES_LOCK = (
    CONCURRENCY_MODE,
    LOCK_PROVIDER,
    FILE_LOCK_DIRECTORY,
    FILE_LOCK_EXPIRE,
    LOCK_PAUSE_MS,
    LOCK_RETRIES,
    LOCK_VALIDITY,
    LOCK_RENEWAL,
    FAILED_WRITES,
    HEARTBEAT_MS,
    HEARTBEAT_MISSES,
)
"""Options that all writers of a table share."""

_REMEDY = (
    f"name {PROVIDERS}{HUDI_FILE} here and in Hudi's jobs (one directory that all of them see), or none where only this engine writes"
)
_TAKEN = (KERNEL, IN_PROCESS, HUDI_FILE, STORAGE)


@dataclass(frozen=True, slots=True)
class LockOptions:
    """Agreement of a table's writers. `provider`: `flock`, `InProcessLockProvider`, `FileSystemBasedLockProvider`, or empty.

    Times in milliseconds, `expire_minutes` in minutes (0: never).
    """

    optimistic: bool = False
    provider: str = ""
    directory: str = ""
    expire_minutes: int = 0
    pause_ms: int | None = None
    retries: int | None = None
    validity_seconds: int = LOCK_VALIDITY.default
    renew_seconds: int = LOCK_RENEWAL.default
    heartbeat_ms: int = HEARTBEAT_MS.default
    misses: int = HEARTBEAT_MISSES.default

    @property
    def tolerated_ms(self) -> int:
        """Age at which a heartbeat expires (`HoodieHeartbeatClient`: interval x tolerable misses)."""
        return self.heartbeat_ms * self.misses

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> LockOptions:
        """Raises `OptionError`, and `LockError` with a provider that the engine lacks, and the remedy."""
        optimistic = CONCURRENCY_MODE.read(raw) == OPTIMISTIC
        if optimistic and FAILED_WRITES.read(raw) == "EAGER":
            raise OptionError(
                f"{FAILED_WRITES.key}=EAGER takes back what others are writing: with {CONCURRENCY_MODE.key}={OPTIMISTIC} only LAZY can be"
            )
        validity, renewal = LOCK_VALIDITY.read(raw), LOCK_RENEWAL.read(raw)
        if renewal * 10 > validity:
            raise OptionError(f"{LOCK_RENEWAL.key}={renewal} is more than a tenth of {LOCK_VALIDITY.key}={validity}, which Hudi refuses")
        return cls(
            optimistic=optimistic,
            provider=_provider(LOCK_PROVIDER.read(raw).strip(), optimistic),
            directory=FILE_LOCK_DIRECTORY.read(raw).strip(),
            expire_minutes=FILE_LOCK_EXPIRE.read(raw),
            pause_ms=LOCK_PAUSE_MS.read(raw),
            retries=LOCK_RETRIES.read(raw),
            validity_seconds=validity,
            renew_seconds=renewal,
            heartbeat_ms=HEARTBEAT_MS.read(raw),
            misses=HEARTBEAT_MISSES.read(raw),
        )


def _provider(named: str, optimistic: bool) -> str:
    """Under optimistic concurrency control without a named provider, Hudi (0.15.0 and 1.2.0) means ZooKeeper."""
    provider = named.removeprefix(PROVIDERS)
    if not named and optimistic:
        raise LockError(
            f"{CONCURRENCY_MODE.key}={OPTIMISTIC} without {LOCK_PROVIDER.key}: Hudi's writers would ask ZooKeeper, which this engine does"
            f" not; {_REMEDY}"
        )
    if named and provider not in _TAKEN:
        raise LockError(f"the engine cannot take the lock of {named} ({LOCK_PROVIDER.key}); {_REMEDY}")
    if optimistic and provider not in (HUDI_FILE, STORAGE):
        raise LockError(
            f"{LOCK_PROVIDER.key}={named} keeps no writer in another process of Hudi's out, which {CONCURRENCY_MODE.key}={OPTIMISTIC} says"
            f" there is; {_REMEDY}"
        )
    return provider
