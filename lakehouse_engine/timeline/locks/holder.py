"""How the holder of a lock names itself, to those who wait."""

from __future__ import annotations

import json
import os
import socket
import threading
from datetime import datetime

from lakehouse_engine.compat import UTC


def describe_self() -> str:
    """JSON: process id, host, thread and the moment."""
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "thread": threading.current_thread().name, "since": since})


def describe(holder: str) -> str:
    """The holder that left the text `holder`, for a message."""
    try:
        known = json.loads(holder)
        return f"process {known['pid']} on {known['host']} (thread {known['thread']}) since {known['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has not named itself"
