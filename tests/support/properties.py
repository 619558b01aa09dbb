"""`hoodie.properties` edited by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakehouse_engine.format.seal import SEAL_KEY


def edit_properties(table: Path | str, changes: Mapping[str, str]) -> None:
    """Replace stretches of the text, each of which must be there; without its seal, as somebody does who means it."""
    path = Path(table) / ".hoodie" / "hoodie.properties"
    text = unsealed(path.read_text())
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)


def unsealed(text: str) -> str:
    """The text without the line that seals it."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(f"#{SEAL_KEY}="))
