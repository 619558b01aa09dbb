"""What Spark's errors say, in words of whoever wrote the statement: without stacks, plans, and names that only the engine gives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_FOREIGN = ("pyspark", "py4j")
_CALLING = re.compile(r"An error occurred while calling [\w.:$]+\s*:\s*(?:org\.apache\.spark\.SparkException: )?")
"""What Py4J says before the error of a call: which method of which of its objects."""
_PLAN = re.compile(r";\n[^\n]*\n *(?:[+:]- |: )")
"""Where the plan begins that analysis failed on: a tree of more than one node."""
_FRAGMENT = re.compile(r"\n== SQL[^\n]*==\n(?P<body>.*)", re.DOTALL)
"""The piece of the statement that Spark quotes. Where the engine has bound the statement it is not what its user wrote."""
_OWN_NAME = re.compile(r"`?__(?:lakehouse|dbt)_\w*`?")
_MISSING = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] The table or view (?P<name>`.*?`) cannot be found")
_PLACE = re.compile(r"; (line \d+ pos \d+)")


def is_of_spark(error: BaseException) -> bool:
    """Whether PySpark or Py4J raised it."""
    return type(error).__module__.split(".")[0] in _FOREIGN


def spark_text(error: Exception) -> str:
    """What an error of Spark's says, without Java's stack and Spark's plans."""
    text = str(error).strip()
    for end in ("\n\tat ", "\nJVM stacktrace", ";\n'"):
        text = text.split(end)[0]
    if found := _PLAN.search(text):
        text = text[: found.start()]
    text = _own_words(_CALLING.sub("", text))
    return text.strip() or type(error).__name__


def _own_words(text: str) -> str:
    """The text without names that the engine made up. Of a quoted statement that has some, only what Spark underlines is kept."""
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
    """A table or view that a statement names and that is not there; `place` is where the statement names it, as Spark counts."""

    parts: tuple[str, ...]
    place: str | None


def missing_relation(text: str) -> Missing | None:
    """The relation that an error of Spark's says is missing; None for other errors."""
    found = _MISSING.search(text)
    if found is None:
        return None
    parts = tuple(part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", found["name"]))
    place = _PLACE.search(text)
    return Missing(parts, place[1] if place else None)
