"""How a process signs what it leaves on the storage while it is at work, so that others know whether it is there still.

The dead of one machine are known at once; of other machines nothing but the age of what they left is known.
"""

from __future__ import annotations

import json
import os
import socket
from functools import cache

from lakehouse_engine.timeline.locks.holder import describe_self, is_running, process_fields

_STARTED = 19
"""Place of a process's beginning among what the kernel says of it (proc_pid_stat(5): field 22, the state is field 3)."""
_ENDED = "ended"
_AT_WORK: set[str] = set()
"""Nonces of what this process is at work on."""


def begin_work(nonce: str) -> bytes:
    """What to sign with, until `end_work`: JSON that says which process this is."""
    _AT_WORK.add(nonce)
    return json.dumps(_signature(nonce)).encode()


def ended_work(nonce: str) -> bytes:
    """As `begin_work`, of what this process has ended and leaves to others."""
    return json.dumps({**_signature(nonce), _ENDED: True}).encode()


def _signature(nonce: str) -> dict[str, object]:
    return {**json.loads(describe_self()), "boot": _machine(), "started": _started(os.getpid()), "nonce": nonce}


def end_work(nonce: str) -> None:
    """This process is done with it, whether or not its file could be removed."""
    _AT_WORK.discard(nonce)


def is_at_work(nonce: str) -> bool:
    """Whether this process is."""
    return nonce in _AT_WORK


def parse_signature(body: bytes) -> dict[str, object]:
    """What a process of this engine said of itself; empty for anything else."""
    try:
        known = json.loads(body)
    except ValueError:
        return {}
    return known if isinstance(known, dict) and isinstance(known.get("pid"), int) else {}


def is_of_this_machine(known: dict[str, object]) -> bool:
    """Whether a process signed that this one can look for."""
    return bool(known) and (known.get("host"), known.get("boot")) == (socket.gethostname(), _machine())


def pid_of(known: dict[str, object]) -> int:
    """The number of a process that signed; 0 where it did not say."""
    pid = known.get("pid", 0)
    return pid if isinstance(pid, int) else 0


def may_be_at_work(known: dict[str, object]) -> bool:
    """False for processes that said they are done with it, and for those of this machine that have ended or are."""
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
    """What tells this run of the machine, and the container whose process ids are meant, from every other; empty where the system does
    not say.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did, so that another process of its number is not taken for it; empty if unknown."""
    fields = process_fields(pid)
    return fields[_STARTED] if len(fields) > _STARTED else ""
