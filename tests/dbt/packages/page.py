"""docs/packages.md, of what the lanes are known to fail in and of what a run of them counted.

`LAKEHOUSE_PACKAGES_COUNTED=1` lets the lane write the counts (counted.json), and then `python -m tests.dbt.packages.page` the page. The
counts are those of the copies whose digests stand beside them; of other copies the lane compares the failures alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.dbt.packages.lane import ROOT, Known, Outcome, digest_of
from tests.dbt.packages.table import KNOWN

DOCUMENT = ROOT / "docs" / "packages.md"
COUNTED = Path(__file__).with_name("counted.json")
KINDS = ("seed", "snapshot", "model", "test", "unit_test")

HEAD = """# dbt packages

Packages work as they are installed. `target.database` is `spark_catalog`, the name of the one catalog, and `information_schema` answers for
the warehouse. `adapter.dispatch` looks for macros named `lakehouse__`, `spark__`, `databricks__` and `default__`, in this order, so that a
package that knows Databricks and not Spark needs no shims.

For macros of `audit_helper`, `dbt_expectations`, `dbt_utils` and `elementary` that have no form for Spark, or a wrong one, the adapter has
its own, which `adapter.dispatch` finds right before the package's; a project's own macros, and its `dispatch` in `dbt_project.yml`, come
first as ever. `spark_utils` is not needed; with it in front of `dbt_utils`, its macros are used.

| Macro | What the package's own does on Spark |
|---|---|
| `dbt_utils.deduplicate` | loses every row with a null in it |
| `dbt_utils.width_bucket` | counts edges from zero instead of from the least value, and below that value downwards |
| `dbt_utils.unpivot` | casts to `varchar`, which Spark has only with a length |
| `dbt_utils.not_accepted_values` | never finds a value with a backslash |
| `audit_helper.compare_and_classify_query_results` and the like | take ('x', null) and (null, 'x') for one row |
| `audit_helper.quick_are_queries_identical` | has no form for Spark |
| `dbt_expectations.regexp_instr` | drops flags, and warns of `is_raw` |
| `dbt_expectations.expect_column_most_common_value_to_be_in_set` | rounds numbers to whole ones |
| `elementary`: tables of the information schema, fields of the target | ask for Unity Catalog, or for a profile of Databricks |

`dbt_project_evaluator` decides two things by the names of the adapters that it knows. It writes a query for each step of a project's chains
and has to be told how many, at least `chained_views_threshold` (5); dependencies over more steps are not seen. And the models that all
others read have to be tables, as views would be computed in each. In `dbt_project.yml`:

```yaml
vars:
  dbt_project_evaluator:
    max_depth_dag: 9
models:
  dbt_project_evaluator:
    marts:
      core:
        int_direct_relationships: {+materialized: table}
        int_all_dag_relationships: {+materialized: table}
```

What follows is of the packages' own integration projects, which `make packages` runs from copies of them (`LAKEHOUSE_PACKAGES`: a folder
with a folder for each package, by default `.cache/packages`). Each node that fails has to be one of those below, or to stand on one, and
each of those below has to fail.

"""


def written() -> str:
    """The text of the page."""
    counts = counted()
    lines = ["| Project of | Version | " + " | ".join(_title(kind) for kind in KINDS) + " |", "|---|---|" + "---|" * len(KINDS)]
    lines += [_row(known, counts[known.lane.name]) for known in KNOWN]
    failing = [text for known in KNOWN if known.failing for text in (f"\n## {known.lane.name}\n", *_reasons(known))]
    edits = [_edit(known, name, *texts) for known in KNOWN for name, texts in known.lane.edits.items()]
    changed = "\nTexts of projects that are for other adapters are changed:\n\n" + "\n".join(edits) + "\n" if edits else ""
    return HEAD + "\n".join(lines) + "\n" + changed + "\n".join(failing) + "\n"


def _edit(known: Known, name: str, old: str, new: str) -> str:
    return f"- {known.lane.name}: `{name}` says {' '.join(new.split())} for {' '.join(old.split())}."


def _title(kind: str) -> str:
    return kind.replace("_", " ").capitalize() + "s"


def _row(known: Known, found: Mapping[str, Any]) -> str:
    cells = [found["nodes"].get(kind, "") for kind in KINDS]
    return f"| {known.lane.name} | {found['version']} | {' | '.join(cells)} |"


def _reasons(known: Known) -> list[str]:
    return [f"- `{node}`: {reason}." for node, reason in sorted(known.failing.items())]


def counted() -> dict[str, Any]:
    """By lane: the version of the package, the digests of the copies, and of each kind of node how many passed, of how many."""
    return dict(json.loads(COUNTED.read_text(encoding="utf-8"))) if COUNTED.exists() else {}


def counts_of(known: Known, outcome: Outcome, source: Path) -> dict[str, Any]:
    """What a run counted, as `counted` has it. A copy's version stands in its file `.version`, as `git describe` prints it."""
    named = source / known.lane.package / ".version"
    version = named.read_text(encoding="utf-8").strip() if named.exists() else "unknown"
    return {
        "version": version,
        "digests": {name: digest_of(source / name) for name in known.lane.packages},
        "nodes": {kind: f"{good} of {number}" for kind, (good, number) in outcome.counts.items() if kind in KINDS},
    }


def keep(known: Known, found: Mapping[str, Any]) -> None:
    """Write one lane's counts."""
    COUNTED.write_text(json.dumps({**counted(), known.lane.name: found}, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    DOCUMENT.write_text(written(), encoding="utf-8")
