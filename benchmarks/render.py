"""Results as Markdown. Pure: takes measurements, returns text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cells import Cell, Measurement, Status
from benchmarks.goals import judge

_MIB = 1024 * 1024
Results = Mapping[tuple[str, Cell], Measurement]


@dataclass(frozen=True)
class SizeReport:
    """Everything measured at one table size. `titles` gives the printed name of each contender, in order."""

    rows: int
    titles: Mapping[str, str]
    cells: Sequence[Cell]
    results: Results
    skipped: Mapping[str, str]
    suite: str = "copy-on-write"
    reference: str = "ours"


def markdown(head: Mapping[str, str], reports: Sequence[SizeReport]) -> str:
    """The whole report: the circumstances, then each size."""
    lines = ["# Benchmark", "", *(f"- {key}: {value}" for key, value in head.items()), ""]
    for report in reports:
        lines += [*_size(report), ""]
    return "\n".join(lines)


def _size(report: SizeReport) -> list[str]:
    def time(item: Measurement, results: Results) -> str:
        return _time(item, results, report.reference)

    lines = [f"## {report.rows:,} rows x 11 columns, {report.suite}", ""]
    reference = report.titles.get(report.reference, report.reference)
    lines += [f"Median seconds; in brackets the ratio to {reference} (above 1: slower).", "", *_table(report, time), ""]
    lines += _series(report)
    lines += ["Peak resident memory of all processes / of the Python process that drives, MiB.", "", *_table(report, _memory), ""]
    lines += ["Spark jobs / data files written / MiB written.", "", *_table(report, _work), ""]
    lines += [*_goals(report), *_remarks(report)]
    return lines


def _table(report: SizeReport, show: Callable[[Measurement, Results], str]) -> list[str]:
    rows = [["", *(cell.label for cell in report.cells)]]
    for name, title in report.titles.items():
        found = [report.results.get((name, cell)) for cell in report.cells]
        rows.append([title, *("-" if item is None else _shown(item, report.results, show) for item in found)])
    return table(rows)


def _shown(item: Measurement, results: Results, show: Callable[[Measurement, Results], str]) -> str:
    if item.status is Status.OK:
        return show(item, results)
    return "**error**" if item.status is Status.ERROR else "-"


def _series(report: SizeReport) -> list[str]:
    """Every upsert in a row: a median would hide what the cell is about."""
    items = [item for item in report.results.values() if item.cell is Cell.UPSERT_SERIES and item.status is Status.OK]
    if not items:
        return []
    rows = [["", "last three to first three", "seconds"]]
    rows += [[report.titles[item.contender], f"{item.growth:.2f}x", " ".join(f"{one:.2f}" for one in item.seconds)] for item in items]
    return ["Upserts of 1 % in a row.", "", *table(rows), ""]


def _time(item: Measurement, results: Results, reference: str) -> str:
    ours = results.get((reference, item.cell))
    text = f"{item.median:.2f}"
    if item.contender == reference or ours is None or ours.status is not Status.OK:
        return text
    return f"{text} ({ratio(item.median, ours.median)})"


def ratio(value: float, reference: float) -> str:
    """`2.4x`; a reference of zero has no ratio."""
    return f"{value / reference:.2f}x" if reference > 0 else "-"


def _memory(item: Measurement, _: Results) -> str:
    if item.peak.tree == 0:
        return "not measured"
    return f"{item.peak.tree / _MIB:.0f} / {item.peak.driver / _MIB:.0f}"


def _work(item: Measurement, _: Results) -> str:
    jobs = "-" if item.spark_jobs < 0 else str(item.spark_jobs)
    return f"{jobs} / {item.files_written} / {item.bytes_written / _MIB:.1f}"


def _goals(report: SizeReport) -> list[str]:
    judged = judge(report.results)
    if not judged:
        return []
    rows = [["goal", "measured", ""], *([goal.text, goal.measured, "met" if goal.met else "**missed**"] for goal in judged)]
    return ["Goals.", "", *table(rows), ""]


def _remarks(report: SizeReport) -> list[str]:
    lines = [f"- {report.titles.get(name, name)}: skipped: {reason}" for name, reason in report.skipped.items()]
    failed = [item for item in report.results.values() if item.status is Status.ERROR]
    return lines + [f"- {report.titles[item.contender]}, {item.cell.label}: {_one_line(item.note)}" for item in failed]


def _one_line(text: str, limit: int = 400) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= limit else joined[: limit - 3] + "..."


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; the first row is its head. Bars inside a value are escaped."""
    escaped = [[value.replace("|", "\\|") for value in row] for row in rows]
    widths = [max(len(row[column]) for row in escaped) for column in range(len(escaped[0]))]
    lines = ["| " + " | ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)) + " |" for row in escaped]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
