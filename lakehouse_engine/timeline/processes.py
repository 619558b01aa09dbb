"""Signatures of processes in what they leave on the storage, so that others can check whether they are alive.

Dead processes of the same machine are known at once; for other machines only the age of their files is known.
"""

from __future__ import annotations

import json
import os
import socket
from functools import cache

from lakehouse_engine.timeline.locks.holder import describe_self, is_running, process_fields

_STARTED = 19
"""Position of a process's start time in the kernel's line (proc_pid_stat(5): field 22; the state is field 3)."""
_ENDED = "ended"
_AT_WORK: set[str] = set()
"""Nonces of this process's current work."""


def begin_work(nonce: str) -> bytes:
    """Signature until `end_work`: JSON that identifies this process."""
    _AT_WORK.add(nonce)
    return json.dumps(_signature(nonce)).encode()


def ended_work(nonce: str) -> bytes:
    """`begin_work` for work that this process has ended and leaves to others."""
    return json.dumps({**_signature(nonce), _ENDED: True}).encode()


def _signature(nonce: str) -> dict[str, object]:
    return {**json.loads(describe_self()), "boot": _machine(), "started": _started(os.getpid()), "nonce": nonce}


def end_work(nonce: str) -> None:
    """This process is done with it, even if its file could not be removed."""
    _AT_WORK.discard(nonce)


def is_at_work(nonce: str) -> bool:
    """True while this process works on it."""
    return nonce in _AT_WORK


def parse_signature(body: bytes) -> dict[str, object]:
    """What a process of this engine wrote about itself; empty for anything else."""
    try:
        known = json.loads(body)
    except ValueError:
        return {}
    return known if isinstance(known, dict) and isinstance(known.get("pid"), int) else {}


def is_of_this_machine(known: dict[str, object]) -> bool:
    """True if the signing process can be checked from here."""
    return bool(known) and (known.get("host"), known.get("boot")) == (socket.gethostname(), _machine())


def pid_of(known: dict[str, object]) -> int:
    """Number of the signing process; 0 if it did not say."""
    pid = known.get("pid", 0)
    return pid if isinstance(pid, int) else 0


def may_be_at_work(known: dict[str, object]) -> bool:
    """False for processes that said that they are done, and for dead ones of this machine."""
    if known.get(_ENDED):
        return False
    if not is_of_this_machine(known):
        return True
    pid = pid_of(known)
    if pid == os.getpid():
        return known.get("nonce") in _AT_WORK
    return is_running(pid) and known.get("started") == _started(pid)


@cache
def _machine() -> str:
    """Identifies this boot of the machine, and the container of the process ids; empty if the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Start time of a process, in ticks since boot, so that a later process with the same number is not mistaken for it; empty if unknown.
    """
    fields = process_fields(pid)
    return fields[_STARTED] if len(fields) > _STARTED else ""
