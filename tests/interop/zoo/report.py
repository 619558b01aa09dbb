"""The zoo as a table of documentation: `python -m tests.interop.zoo.report` writes it into docs/interop.md.

It is made of what the kinds expect, which the lane holds to: a run fails where a table is not read, continued or refused as said there.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from tests.interop.zoo.kind import BOTH, Kind, Outcome
from tests.interop.zoo.kinds import KINDS
from tests.interop.zoo.untried import UNTRIED

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "interop.md"
BEGIN = "<!-- begin: make docs writes this table from tests/interop/zoo -->"
END = "<!-- end -->"
FULL = "read, continued, read back by both"


def table(kinds: Mapping[str, Kind] = KINDS) -> str:
    """The table, in Markdown; kinds in which all is well with either Hudi share a line for each of their groups."""
    lines = ["| kind of table | made by Hudi 0.15.0 | made by Hudi 1.2.0 |", "|---|---|---|"]
    told = {kind.name: tuple(_cell(kind, version) for version in BOTH) for kind in kinds.values()}
    for group, members in groupby(kinds.values(), lambda kind: kind.shown.partition(": ")[0] if ": " in kind.shown else ""):
        found = list(members)
        well = [kind for kind in found if set(told[kind.name]) == {FULL}]
        if well and group:
            lines.append(f"| {group}: {'; '.join(kind.shown.partition(': ')[2] for kind in well)} | {FULL} | {FULL} |")
        lines += [f"| {kind.shown} | {' | '.join(told[kind.name])} |" for kind in found if not group or kind not in well]
    return "\n".join(lines)


def written(text: str) -> str:
    """The document with the table of now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT.name} has no place for the table: {BEGIN!r} and {END!r} must stand there")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _cell(kind: Kind, version: str) -> str:
    if version not in kind.makers:
        return "not tried yet" if kind.name in UNTRIED[version] else kind.why_not
    outcome = kind.outcome(version)
    return f"**not right yet**: {outcome.wrong}" if outcome.wrong else _told(kind, version, outcome)


def _told(kind: Kind, version: str, outcome: Outcome) -> str:
    if outcome.refused:
        return f"{'read; writes are refused' if outcome.read else 'refused'}: {outcome.remedy}"
    text = FULL if version not in kind.alone else "read, continued, read back by it; the other Hudi cannot read such tables at all"
    return f"{text}. {kind.note}" if kind.note else text


def main() -> None:
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
