"""dbt-tests-adapter: `dbt debug` with right and wrong profiles and projects, and stored failures with a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugInvalidProjectPostgres, BaseDebugPostgres
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import BaseStoreTestFailuresLimit
from dbt.tests.util import run_dbt_and_capture


class TestDebugProfiles(BaseDebugPostgres):
    """With the targets that the suite asks for: they lack a required key, point to a warehouse that is a file, and say nothing."""

    @pytest.fixture(autouse=True)
    def targets(self, project: Any) -> None:
        path = Path(project.profiles_dir) / "profiles.yml"
        profiles = yaml.safe_load(path.read_text(encoding="utf-8"))
        given = profiles["test"]["outputs"]
        occupied = Path(project.profiles_dir) / "occupied"
        occupied.write_text("not a folder", encoding="utf-8")
        given["nopass"] = {key: value for key, value in given["default"].items() if key != "schema"}
        given["wronguser"] = {**given["default"], "warehouse": str(occupied)}
        given["none_target"] = None
        path.write_text(yaml.safe_dump(profiles), encoding="utf-8")

    @pytest.mark.parametrize(
        ("target", "line", "said"),
        [
            ("nopass", "profiles.yml file", "ERROR invalid"),
            ("wronguser", "Connection test", "ERROR"),
            ("none_target", "output 'none_target'", "misconfigured"),
        ],
    )
    def test_the_line_is_there(self, project, target, line, said):
        """The suite's own methods pass as well when no line matches; one of them leaves dbt with another folder of profiles."""
        arguments = ["debug", "--target", target, "--profiles-dir", str(project.profiles_dir)]
        _, out = run_dbt_and_capture(arguments, expect_pass=False)
        found = [one for one in out.splitlines() if line in one]
        assert any(said in one for one in found), found


class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass


class TestStoreTestFailuresLimit(BaseStoreTestFailuresLimit):
    pass
