"""`dbt init`, answered as a person answers it: the profile is one that dbt takes, and the project one that it parses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
INSTALLED = [path.parent.name for path in sorted((ROOT / "dbt" / "adapters").glob("*/__version__.py"))]
"""What `dbt init` lists of ours, as it looks for it: in the folder of dbt's own adapters, where an editable installation is not."""
RUN = f"""
import sys
from dbt.cli.main import cli
from dbt.task import init
init._get_adapter_plugin_names = lambda: {INSTALLED!r}
cli(sys.argv[1:])
"""


def dbt(home: Path, place: str, *arguments: str, answers: tuple[object, ...] = ()) -> str:
    """dbt in a folder below `home`, where the profile is; as a process of its own, since it prompts and changes its folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DBT_PROFILES_DIR": str(home), "DO_NOT_TRACK": "1"}
    command = [sys.executable, "-c", RUN, *arguments]
    said = "".join(f"{answer}\n" for answer in answers)
    done = subprocess.run(command, cwd=home / place, env=environment, input=said, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def initialised(home: Path, *answers: object) -> dict[str, Any]:
    """The target of the profile that the answers give, for a new project `shop`."""
    dbt(home, ".", "init", "shop", answers=(1, *answers))
    profiles = yaml.safe_load((home / "profiles.yml").read_text(encoding="utf-8"))
    assert profiles["shop"]["target"] == "dev"
    return dict(profiles["shop"]["outputs"]["dev"])


@pytest.mark.dbt
@pytest.mark.parametrize(
    ("answers", "target"),
    [
        (("", "", 1, ""), {"schema": "analytics", "warehouse": "./lakehouse", "method": "local", "threads": 4}),
        (("marts", "data/lake", 2, 1), {"schema": "marts", "warehouse": "data/lake", "method": "session", "threads": 1}),
        (("s", "w", 3, "sc://h:1", 2), {"schema": "s", "warehouse": "w", "method": "connect", "url": "sc://h:1", "threads": 2}),
    ],
)
def test_the_answers_are_a_profile_with_which_the_new_project_parses(tmp_path, answers, target):
    assert initialised(tmp_path, *answers) == {"type": "lakehouse", **target}
    dbt(tmp_path, "shop", "parse")


@pytest.mark.dbt
@pytest.mark.spark
def test_dbt_debug_takes_the_profile_of_the_defaults(tmp_path):
    initialised(tmp_path, "", "", 1, "")
    assert "All checks passed!" in dbt(tmp_path, "shop", "debug")


def test_the_adapter_is_one_choice_and_its_package_of_macros_none():
    assert INSTALLED == ["lakehouse"]
