"""Imports of Python files, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def parse(path: Path, root: Path) -> tuple[ast.Module, list[str]]:
    """The tree of a file, and the names of its package below `root`."""
    return ast.parse(path.read_text(encoding="utf-8")), list(path.relative_to(root).with_suffix("").parts[:-1])


def imported_names(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is imported below `tree`; relative imports are resolved against `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
