"""Code in documentation, so that tests can run it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Block:
    """A fenced block of a document; `line` is that of its first line of code."""

    document: str
    line: int
    code: str

    @property
    def needs_spark(self) -> bool:
        return "SparkSession" in self.code

    @property
    def needs_hudi_rs(self) -> bool:
        return "from hudi import" in self.code

    def run(self, namespace: dict[str, object]) -> None:
        """Execute Python code; tracebacks point into the document."""
        exec(compile("\n" * (self.line - 1) + self.code, self.document, "exec"), namespace)


def blocks(document: str, language: str) -> list[Block]:
    """The blocks of one language in a document of the repository, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(document, text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in found]
