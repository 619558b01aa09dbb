"""What the documentation shows is run as it stands, and what it points to is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.support.documents import ROOT, blocks

PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md"))
DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in PAGES)


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_the_python_examples_run_in_their_order(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in blocks(document, "python"):
        if block.needs_spark or (block.needs_hudi_rs and importlib.util.find_spec("hudi") is None):
            continue
        block.run(namespace)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_within_the_repository_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not ((ROOT / document).parent / target).exists()] == []


def test_make_targets_named_by_the_readme_are_in_the_makefile() -> None:
    named = set(re.findall(r"`?make ([a-z-]+(?: [a-z-]+)*?)(?:`|\s{2,})", (ROOT / "README.md").read_text(encoding="utf-8")))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {word for words in named for word in words.split()} - targets == set()
    assert {"demo", "test"} <= {word for words in named for word in words.split()}
