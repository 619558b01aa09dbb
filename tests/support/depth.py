"""How deep the tests go that could go on for hours: random schedules, histories, damaged bits, killed runs.

LAKEHOUSE_DEPTH   full: as deep as `make nightly` goes
"""

from __future__ import annotations

import os

IS_FULL = os.environ.get("LAKEHOUSE_DEPTH") == "full"
