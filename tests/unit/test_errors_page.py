"""`docs/errors.md` names every class of the error tree, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from lakehouse_engine import errors
from lakehouse_engine.errors import LakehouseError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


def test_every_error_has_its_line_and_every_line_its_error() -> None:
    classes = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LakehouseError)}
    cells = [line.split("|")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == classes - {"LakehouseError"}
