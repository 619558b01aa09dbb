"""Class archives (Java's AppCDS): the classes that a JVM loads for Spark, kept in a file for later JVMs.

Loading them is half of the CPU time of a new embedded Spark. An archive fits one Java and one set of Spark jars, which its name encodes,
with its size and checksum. A separate process makes it after a first run without one (`archive_builder`). Nothing here raises: without an
archive Spark starts as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dbt.adapters.events.logging import AdapterLogger

logger = AdapterLogger("Lakehouse")

VARIABLE = "LAKEHOUSE_JVM_CACHE"
"""Overrides the profile's default: a folder, `true` or `false`."""
_YES, _NO = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
_NAME = re.compile(r"-([0-9a-f]+)-([0-9a-f]{8})\.jsa")
BUILDER = "dbt.adapters.lakehouse.environments.archive_builder"
_OWN_CHOICE = ("-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-XX:SharedClassListFile", "-Xshare")
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_CLASS_PATH = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_CLASSPATH")
_UNUSED_S = 30 * 86400
_RETRY_S = 86400
_BUSY_S = 3600
_NEEDED_BYTES = 600 << 20
_PIECE = 1 << 22


@dataclass(frozen=True)
class ClassArchive:
    """Place of the archive for one Java and one Spark. `name` stands for both."""

    folder: Path
    name: str

    def find(self) -> Path | None:
        """The archive, if it is whole and owned by this user; a damaged one is removed. Reading its bytes also brings them into memory."""
        made = self._made()
        return next((path for path in made if _is_good(path)), None) if made and _is_ours(self.folder) else None

    def _made(self) -> list[Path]:
        return [path for path in sorted(self.folder.glob(f"{self.name}-*.jsa")) if _NAME.fullmatch(path.name, len(self.name))]

    @property
    def failure(self) -> Path:
        """Records why the last attempt made no archive."""
        return self.folder / f"{self.name}.failed"

    @property
    def busy(self) -> Path:
        """Exists while an archive is being made."""
        return self.folder / f"{self.name}.building"

    def wanted(self) -> bool:
        """True if an archive should be made now: no process is making one, none failed recently, and there is room."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            room = shutil.disk_usage(self.folder).free > _NEEDED_BYTES and os.access(self.folder, os.W_OK)
        except OSError as error:
            logger.debug(f"No class archive is made in {self.folder}: {error}")
            return False
        if not room or not _is_ours(self.folder) or self._made():
            return False
        return not _younger(self.failure, _RETRY_S) and not _younger(self.busy, _BUSY_S)

    def claim(self) -> bool:
        """Record that this process makes one; False if another one does."""
        if not _younger(self.busy, _BUSY_S):
            self.busy.unlink(missing_ok=True)
        try:
            self.busy.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def publish(self, dumped: Path) -> Path:
        """Give an archive its name in one step. Of two made at once, both are good."""
        path = self.folder / f"{self.name}-{dumped.stat().st_size:x}-{_checksum(dumped):08x}.jsa"
        os.replace(dumped, path)
        return path

    def sweep(self) -> None:
        """Remove archives unused for long, and leftovers of interrupted attempts."""
        for path in [*self.folder.glob("spark-*.jsa"), *self.folder.glob("spark-*.failed"), *self.folder.glob("spark-*.building")]:
            if not _younger(path, _UNUSED_S):
                path.unlink(missing_ok=True)
        for path in self.folder.glob("spark-*.tmp"):
            if not _younger(path, _RETRY_S):
                path.unlink(missing_ok=True)


def folder_of(choice: bool | str) -> Path | None:
    """Folder that the profile's `jvm_cache` means; None if archives are turned off."""
    named = str(choice).lower()
    if named in _YES:
        choice = os.environ.get(VARIABLE, "")
        named = choice.lower()
    if named in _NO or not hasattr(os, "getuid"):  # the file's owner cannot be determined
        return None
    try:
        if named and named not in _YES:
            return Path(str(choice)).expanduser().resolve()
        return None if os.environ.get("CI") else _user_cache()  # a cache folder made there disappears with the machine
    except (OSError, RuntimeError, ValueError) as error:  # a user without a home, a loop of links, no path at all
        logger.debug(f"No class archive is used: {error}")
        return None


def _user_cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")  # its specification says to ignore relative values
    return ((base if base.is_absolute() else Path.home() / ".cache") / "dbt-lakehouse").resolve()


def archive_for(folder: Path, java: str, spark_home: Path) -> ClassArchive | None:
    """Place of the archive for the output of `java -version` and Spark's jars; None if Java's options cannot hold its path."""
    if any(letter in str(folder) for letter in ':"\\'):
        return None
    try:
        return ClassArchive(folder, f"spark-{_fingerprint(java, spark_home)}")
    except OSError as error:
        logger.debug(f"No class archive is used: {error}")
        return None


def _fingerprint(java: str, spark_home: Path) -> str:
    """Java rejects an archive if a jar's time (whole seconds, as in images), size or order differs."""
    found = hashlib.sha256(f"{java}\0{spark_home}\0{os.environ.get('JAVA_HOME', '')}\0".encode())
    for name in _CLASS_PATH:
        found.update(f"{name}={os.environ.get(name, '')}\0".encode())
    with os.scandir(spark_home / "jars") as entries:
        for name, seen in sorted((entry.name, entry.stat()) for entry in entries):
            found.update(f"{name} {seen.st_size} {int(seen.st_mtime)}\0".encode())
    return found.hexdigest()[:16]


def archive_options(path: Path, chosen: str) -> str:
    """Java options to use the archive, unless the user's own name one. If it does not fit, Java silently continues without it."""
    said = " ".join([chosen, *(os.environ.get(name, "") for name in _JAVA_VARIABLES)])
    if any(option in said for option in _OWN_CHOICE):
        return ""
    return f'"-XX:SharedArchiveFile={path}" -Xshare:auto -Xlog:cds*=off'


def tell_refused(path: Path, pid: int) -> None:
    """Log a line if the JVM could not use the archive: other options or another class path."""
    try:
        used = str(path) in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return  # Linux only
    if not used:
        logger.debug(f"Java does not take the class archive {path} with these settings; Spark starts without it")


def build_at_exit(archive: ClassArchive) -> None:
    """Schedule an archive to be made by another process, at low priority, after this one has ended."""
    if archive.wanted():
        atexit.register(_build, archive)


def _build(archive: ClassArchive) -> None:
    if not archive.wanted():
        return
    command = [sys.executable, "-m", BUILDER, str(archive.folder), archive.name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        subprocess.Popen(command, cwd=archive.folder, env=environment, start_new_session=True, **quiet)  # type: ignore[call-overload]
    except OSError as error:
        logger.debug(f"No class archive is made: {error}")


def _is_ours(folder: Path) -> bool:
    """True if only this user and root can write there. Java runs the code in an archive, so a writer there acts as this user."""
    for place in (folder, *folder.parents):
        try:
            seen = place.lstat()
        except OSError as error:
            logger.debug(f"No class archive is used: {error}")
            return False
        # In a directory like /tmp others may create files, but not replace this user's.
        shared = place != folder and seen.st_mode & stat.S_ISVTX
        if not _is_own(seen, stat.S_ISDIR, 0 if shared else stat.S_IWGRP | stat.S_IWOTH):
            logger.debug(f"No class archive is used: others can write in {place}, or it is a link")
            return False
    return True


def _is_own(seen: os.stat_result, kind: Callable[[int], bool], forbidden: int) -> bool:
    return kind(seen.st_mode) and seen.st_uid in (os.getuid(), 0) and not seen.st_mode & forbidden


def _is_good(path: Path) -> bool:
    try:
        if not _is_own(path.lstat(), stat.S_ISREG, stat.S_IWGRP | stat.S_IWOTH):
            logger.debug(f"The class archive {path} is not used: it is somebody else's, or others can write it")
            return False
        if _is_whole(path):
            with contextlib.suppress(OSError):  # a read-only archive works too: the time only records that it is in use
                os.utime(path)
            return True
        path.unlink()
    except OSError as error:
        logger.debug(f"The class archive {path} is not used: {error}")
        return False
    logger.info(f"The class archive {path} was damaged and is removed; Spark starts without it, and another one is made")
    return False


def _is_whole(path: Path) -> bool:
    size, checksum = path.stem.rsplit("-", 2)[-2:]
    return path.stat().st_size == int(size, 16) and _checksum(path) == int(checksum, 16)


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def _younger(path: Path, seconds: float) -> bool:
    try:
        return time.time() - path.stat().st_mtime < seconds
    except OSError:
        return False
