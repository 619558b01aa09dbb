from __future__ import annotations

from lakehouse_engine.cli.options_doc import render
from lakehouse_engine.options import OPTIONS
from tests.support.documents import ROOT


def test_the_committed_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == render(), "run `make docs` and commit docs/options.md"


def test_the_page_names_every_key_and_older_name() -> None:
    page = render()
    assert [key for key in OPTIONS if f"`{key}`" not in page] == []
