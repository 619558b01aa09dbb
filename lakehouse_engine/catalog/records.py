"""JSON files of the catalog beside the tables: view definitions, and comments of tables, views and columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakehouse_engine.errors import MetadataError


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view. `sql` is as the user wrote it; `columns` are (name, comment or None) pairs, empty if the query names them.

    `created` is an ISO 8601 time in UTC.
    """

    sql: str
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    created: str = ""

    def to_json(self) -> bytes:
        body = {"sql": self.sql, "columns": [list(pair) for pair in self.columns], "comment": self.comment, "created": self.created}
        return _dump(body)

    @classmethod
    def from_json(cls, data: bytes, path: str) -> StoredView:
        """Raises `MetadataError` naming `path` if the file is not a view definition."""
        body = _load(data, path)
        sql = body.get("sql")
        if not isinstance(sql, str):
            raise MetadataError("the view definition has no text under 'sql'; drop the view and create it again", path=path)
        columns = tuple((str(name), None if comment is None else str(comment)) for name, comment in body.get("columns") or ())
        return cls(sql, columns, _text(body.get("comment")), str(body.get("created") or ""))


@dataclass(frozen=True, slots=True)
class Comments:
    """Descriptions of a table or view and its columns (by name; nested columns by dotted path)."""

    comment: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        return _dump({"comment": self.comment, "columns": dict(self.columns)})

    @classmethod
    def from_json(cls, data: bytes, path: str) -> Comments:
        """Raises `MetadataError` naming `path`."""
        body = _load(data, path)
        return cls(_text(body.get("comment")), {str(name): str(text) for name, text in (body.get("columns") or {}).items()})

    def merged(self, comment: str | None, columns: Mapping[str, str]) -> Comments:
        """With `comment` (unless None) and `columns` replaced; an empty text removes a comment."""
        texts = {**self.columns, **columns}
        kept = {name: text for name, text in texts.items() if text}
        return Comments(self.comment if comment is None else comment or None, kept)


def _dump(body: dict[str, Any]) -> bytes:
    # A lone surrogate has no UTF-8 form; backslashreplace writes its JSON escape.
    return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")


def _load(data: bytes, path: str) -> dict[str, Any]:
    try:
        body = json.loads(data)
    except ValueError as error:
        raise MetadataError(f"the catalog file is not JSON: {error}", path=path) from error
    if not isinstance(body, dict):
        raise MetadataError("the catalog file is not a JSON object", path=path)
    return body


def _text(value: object) -> str | None:
    return None if value is None else str(value)
