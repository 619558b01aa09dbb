"""File systems whose `flock` does not reach other machines (or virtual machines) with the same files.

Known cases: FUSE clients of object stores and SSH, which lock in the local kernel at best; 9p and shared folders of virtual machines; NFS
mounted with local locks; CIFS without byte range locks. Other NFS maps `flock` to server locks (Linux since 2.6.12), and Lustre, GPFS and
CephFS keep it among all clients.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

MOUNTS = "/proc/self/mounts"
_LOCAL_ONLY = frozenset(
    {
        "9p",
        "vboxsf",
        "prl_fs",
        "fuse.s3fs",
        "fuse.goofys",
        "fuse.mount-s3",
        "fuse.mountpoint-s3",
        "fuse.gcsfuse",
        "fuse.blobfuse",
        "fuse.blobfuse2",
        "fuse.rclone",
        "fuse.sshfs",
        "fuse.vmhgfs-fuse",
    }
)
_LOCAL_OPTIONS = {
    "nfs": frozenset({"nolock", "local_lock=all", "local_lock=flock"}),
    "nfs4": frozenset({"nolock", "local_lock=all", "local_lock=flock"}),
    "cifs": frozenset({"nobrl", "nolock"}),
    "smb3": frozenset({"nobrl", "nolock"}),
    "lustre": frozenset({"localflock"}),
}


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of the kernel's list of mounts."""

    folder: str
    kind: str
    options: frozenset[str]

    @property
    def keeps_flock(self) -> bool:
        """True if a lock here is reliable; unknown kinds are trusted, because their kernel driver handles the lock."""
        return self.kind not in _LOCAL_ONLY and not self.options & _LOCAL_OPTIONS.get(self.kind, frozenset())


_KNOWN: dict[int, Mount | None] = {}


def mount_without_flock(path: str) -> Mount | None:
    """Mount of `path` (which need not exist) if its `flock` is known not to reach other machines; None otherwise."""
    path, device = _nearest(path)
    if device not in _KNOWN:
        found = mount_of(os.path.realpath(path), _mounts())
        _KNOWN[device] = found if found is not None and not found.keeps_flock else None
    return _KNOWN[device]


def _nearest(path: str) -> tuple[str, int]:
    """`path`, or the nearest existing folder above it, and its device. Each is checked once: others may remove what was seen."""
    try:
        return path, os.stat(path).st_dev
    except OSError:
        above = os.path.dirname(path)
        if above == path:
            raise
        return _nearest(above)


def mount_of(path: str, lines: str) -> Mount | None:
    """Mount that holds `path`: the last one of the longest matching folder; None if the list has none."""
    best: Mount | None = None
    for line in lines.splitlines():
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        folder = _unescape(fields[1])
        above = path == folder or path.startswith(folder.rstrip("/") + "/")
        if above and (best is None or len(folder) >= len(best.folder)):
            best = Mount(folder, fields[2], frozenset(fields[3].split(",")))
    return best


def _mounts() -> str:
    """Empty if the system has no such list (macOS): its own file systems keep `flock`."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
