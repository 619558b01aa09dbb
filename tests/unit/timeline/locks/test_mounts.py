from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lakehouse_engine.errors import LockError
from lakehouse_engine.storage.local import LocalStorage
from lakehouse_engine.timeline.lock import TableLock
from lakehouse_engine.timeline.locks import mounts
from lakehouse_engine.timeline.locks.mounts import mount_of
from tests.unit.timeline.locks.tables import table_in

LINES = """\
/dev/vda / ext4 rw,relatime 0 0
server:/a /nfs3 nfs rw,vers=3,nolock,addr=10.0.0.1 0 0
server:/b /nfs4 nfs4 rw,vers=4.2,local_lock=none 0 0
server:/c /nfs4/local nfs4 rw,vers=4.2,local_lock=flock 0 0
bucket /mnt/with\\040blank fuse.s3fs rw 0 0
drive /mnt/c 9p rw,trans=fd 0 0
//server/d /cifs cifs rw,nobrl 0 0
tmpfs /over tmpfs rw 0 0
bucket /over fuse.gcsfuse rw 0 0
short
"""


@pytest.mark.parametrize(
    ("path", "kind", "keeps"),
    [
        ("/var/tables", "ext4", True),
        ("/nfs3/t", "nfs", False),
        ("/nfs3s/t", "ext4", True),
        ("/nfs4/t", "nfs4", True),
        ("/nfs4/local", "nfs4", False),
        ("/mnt/with blank/t", "fuse.s3fs", False),
        ("/mnt/c/Users", "9p", False),
        ("/cifs/t", "cifs", False),
        ("/over/t", "fuse.gcsfuse", False),
    ],
)
def test_the_mount_of_a_path_is_the_nearest_and_last_one_and_says_whether_locks_are_kept(path: str, kind: str, keeps: bool) -> None:
    mount = mount_of(path, LINES)
    assert mount is not None
    assert (mount.kind, mount.keeps_flock) == (kind, keeps)


def test_a_system_without_a_list_of_mounts_is_trusted() -> None:
    assert mount_of("/t", "") is None


@pytest.fixture
def on_s3fs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStorage:
    monkeypatch.setattr(mounts, "_KNOWN", {})
    monkeypatch.setattr(mounts, "_mounts", lambda: f"{LINES}bucket {tmp_path} fuse.s3fs rw 0 0\n")
    return LocalStorage(str(tmp_path / "t"))


def test_a_file_system_that_does_not_keep_the_kernels_lock_is_refused_with_what_to_do(on_s3fs: LocalStorage) -> None:
    table_in(on_s3fs)
    with pytest.raises(LockError, match=r"fuse\.s3fs.*FileSystemBasedLockProvider.*flock.*InProcessLockProvider"), TableLock(on_s3fs):
        pass
    assert on_s3fs.list(".hoodie/.locks") == []


@pytest.mark.parametrize(
    "provider",
    ["flock", "InProcessLockProvider", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"],
)
def test_a_provider_that_is_named_counts_there(on_s3fs: LocalStorage, provider: str) -> None:
    table_in(on_s3fs, {"hoodie.write.lock.provider": provider})
    with TableLock(on_s3fs) as lock:
        assert lock.is_held


def test_a_path_that_is_removed_while_it_is_looked_at_is_judged_by_the_folder_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat, gone = os.stat, str(tmp_path / "t/.hoodie/.locks/table.lock")
    (tmp_path / "t/.hoodie/.locks").mkdir(parents=True)
    Path(gone).touch()

    def stat_after_the_drop(path: object, *rest: object, **named: object) -> os.stat_result:
        """The first look finds the file, every other one is after the table was dropped."""
        found = stat(path, *rest, **named)  # type: ignore[arg-type]
        if path == gone:
            shutil.rmtree(tmp_path / "t")
        return found

    monkeypatch.setattr(mounts.os, "stat", stat_after_the_drop)
    assert mounts.mount_without_flock(gone) is None
    assert mounts.mount_without_flock(gone) is None
