"""Docstrings and comments of the product use plain sentences: patterns that have to be read twice are not there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

UNCLEAR = {
    "begins with a genitive": re.compile(r"^\W*Of (?!all\b|equal\b|several\b|two\b)"),
    "begins with what it is not": re.compile(r"^\W*None for\b"),
    "anew (again, new)": re.compile(r"\banew\b"),
    "in the place of (instead of, replaces)": re.compile(r"\bin the place of\b"),
    "whoever (name the caller, reader, writer)": re.compile(r"\bwhoever\b", re.IGNORECASE),
    "nobody, somebody (name the process or person)": re.compile(r"\b(nobody|somebody)\b(?!'s sight)", re.IGNORECASE),
}


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring and comment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


@cache
def sentences() -> list[tuple[str, str]]:
    """Place and text of each docstring and comment of the product."""
    paths = [path for folder in ("dbt", "lakehouse_engine") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [(f"{path.relative_to(ROOT)}:{line}", text) for path in paths for line, text in texts(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("why", UNCLEAR)
def test_sentences_are_plain(why: str) -> None:
    found = [f"{place}: {text.strip().splitlines()[0]}" for place, text in sentences() if text.strip() and UNCLEAR[why].search(text)]
    assert not found, f"{why}:\n" + "\n".join(found)
