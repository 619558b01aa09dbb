"""JSON as Jackson's default pretty printer writes it: `"key" : value`, objects indented by two, arrays on one line."""

from __future__ import annotations

import json
from typing import Any


def render_json(value: Any) -> bytes:
    """UTF-8 text of a value made of dicts, lists, strings, numbers, booleans and None."""
    # A lone surrogate has no UTF-8 form; backslashreplace writes its JSON escape.
    return _render(value, "").encode("utf-8", "backslashreplace")


def _render(value: Any, indent: str) -> str:
    if isinstance(value, dict):
        return _render_object(value, indent)
    if isinstance(value, (list, tuple)):
        return f"[ {', '.join(_render(item, indent) for item in value)} ]" if value else "[ ]"
    return json.dumps(value, ensure_ascii=False)


def _render_object(value: dict[str, Any], indent: str) -> str:
    if not value:
        return "{ }"
    inner = f"{indent}  "
    members = ",\n".join(f"{inner}{json.dumps(key, ensure_ascii=False)} : {_render(item, inner)}" for key, item in value.items())
    return f"{{\n{members}\n{indent}}}"
