"""Shortens Spark's errors for the author of a statement: no stacks, no plans, no internal names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_FOREIGN = ("pyspark", "py4j")
_CALLING = re.compile(r"An error occurred while calling [\w.:$]+\s*:\s*(?:org\.apache\.spark\.SparkException: )?")
"""Py4J's prefix to a failed call: method and object."""
_PLAN = re.compile(r";\n[^\n]*\n *(?:[+:]- |: )")
"""Start of the plan on which analysis failed: a tree of more than one node."""
_FRAGMENT = re.compile(r"\n== SQL[^\n]*==\n(?P<body>.*)", re.DOTALL)
"""Fragment of the statement that Spark quotes. The engine may have rewritten it."""
_OWN_NAME = re.compile(r"`?__(?:lakehouse|dbt)_\w*`?")
_MISSING = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view (?P<name>`.*?`) cannot be found")
_PLACE = re.compile(r"; (line \d+ pos \d+)")


def is_of_spark(error: BaseException) -> bool:
    """True if PySpark or Py4J raised the error."""
    return type(error).__module__.split(".")[0] in _FOREIGN


def spark_text(error: Exception) -> str:
    """Message of a Spark error without Java stack and plans."""
    text = str(error).strip()
    for end in ("\n\tat ", "\nJVM stacktrace", ";\n'"):
        text = text.split(end)[0]
    if found := _PLAN.search(text):
        text = text[: found.start()]
    text = _own_words(_CALLING.sub("", text))
    return text.strip() or type(error).__name__


def _own_words(text: str) -> str:
    """Text without internal names. A quoted statement that holds some is cut to the part that Spark underlines."""
    found = _FRAGMENT.search(text)
    if found and _OWN_NAME.search(found["body"]):
        underlined = [piece for piece in _underlined(found["body"]) if not _OWN_NAME.search(piece)]
        text = text[: found.start()] + "".join(f"\nin: {piece}" for piece in underlined)
    return _OWN_NAME.sub("(a table or view)", text)


def _underlined(body: str) -> list[str]:
    lines = body.splitlines()
    marked = [(above, line) for above, line in pairwise(lines) if line.strip() and not line.strip(" ^")]
    return [above[line.index("^") : line.rindex("^") + 1] for above, line in marked]


@dataclass(frozen=True)
class Missing:
    """A table or view that a statement names and that does not exist; `place` is its position, as Spark counts."""

    parts: tuple[str, ...]
    place: str | None


def missing_relation(text: str) -> Missing | None:
    """The relation that a Spark error reports as missing; None for other errors."""
    found = _MISSING.search(text)
    if found is None:
        return None
    parts = tuple(part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", found["name"]))
    place = _PLACE.search(text)
    return Missing(parts, place[1] if place else None)
