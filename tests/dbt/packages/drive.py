"""`python -m tests.dbt.packages.drive FOLDER`: the commands of FOLDER/commands.json, in one process and so in one Spark.

What became of the nodes goes to FOLDER/outcomes.json; of a node that several commands built, what the last one says.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner


def main(folder: Path) -> None:
    os.chdir(folder)
    commands: list[list[str]] = json.loads(Path("commands.json").read_text(encoding="utf-8"))
    nodes: dict[str, dict[str, str]] = {}
    errors: list[str] = []
    for command in commands:
        answer = dbtRunner().invoke([*command, "--profiles-dir", str(folder)])
        if answer.exception is not None:
            errors.append(f"dbt {command[0]}: {answer.exception}")
        for result in getattr(answer.result, "results", None) or ():
            if hasattr(result, "node"):
                nodes[result.node.unique_id] = {"status": str(result.status), "message": str(result.message or "")}
            elif not answer.success:
                errors.append(f"dbt {' '.join(command)}: {result.message}")
    Path("outcomes.json").write_text(json.dumps({"nodes": nodes, "parents": _parents(), "errors": errors}), encoding="utf-8")


def _parents() -> dict[str, Any]:
    manifest = Path("target/manifest.json")
    return dict(json.loads(manifest.read_text(encoding="utf-8"))["parent_map"]) if manifest.exists() else {}


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
