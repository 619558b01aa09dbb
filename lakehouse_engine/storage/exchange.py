"""Swaps two directories in one step, on systems that support it."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_HERE = -100
_EXCHANGE = 2
"""Linux `renameat2(2)`: AT_FDCWD and RENAME_EXCHANGE; macOS `renamex_np(2)` has the same number for RENAME_SWAP."""
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def exchange(first: str, second: str) -> bool:
    """Swap the paths; False, with nothing changed, if system or file system cannot do it in one step.

    Raises `OSError` if one does not exist or may not be moved.
    """
    before, after = os.fsencode(first), os.fsencode(second)
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(before, after, ctypes.c_uint(_EXCHANGE))
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, before, _HERE, after, ctypes.c_uint(_EXCHANGE))
    else:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), first, None, second)
