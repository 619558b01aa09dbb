"""Which part of the zoo a run visits: all of it, or the share that the hash of the commit chooses."""

from __future__ import annotations

import os

from tests.interop.zoo.kinds import EVERY, of_makers
from tests.support.shares import chosen, commit_here

SHARE = 6
"""Kinds of a share: most are made by two Hudis, and a visit takes 10 to 15 seconds on two idle cores, which gives three minutes."""

_WANTED = os.environ.get("LAKEHOUSE_ZOO", "")
_TRIED, _UNTRIED = of_makers(tried=True), of_makers(tried=False)
CANDIDATES = {"untried": _UNTRIED, "all": _TRIED, "": _TRIED}.get(_WANTED, EVERY)
VISITED = chosen(list(CANDIDATES), "all" if _WANTED == "untried" else _WANTED, commit_here(), SHARE)
"""The kinds that this run visits: of those that were tried the share of the commit or all; what is untried; or those that are named."""
