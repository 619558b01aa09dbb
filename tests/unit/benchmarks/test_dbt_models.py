"""The dbt benchmark: its projects, its ratios, and what counts as a failed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import dbt_models
from benchmarks.dbt_models import CONTENDERS, Timed, make_project, table
from benchmarks.environments import Unavailable


def test_a_project_has_its_models_and_a_profile_of_the_contender(tmp_path: Path) -> None:
    make_project(tmp_path / "p", CONTENDERS[0], 3)
    assert len(list((tmp_path / "p" / "models").iterdir())) == 3
    assert "type: lakehouse, schema: s, threads: 4" in (tmp_path / "p" / "profiles.yml").read_text()
    assert "{% if is_incremental() %} where 1 = 0" in (tmp_path / "p" / "models" / "m000.sql").read_text()


def test_the_table_has_medians_and_ratios_to_the_first() -> None:
    text = table("1 model(s)", {"a": [Timed(2.0, 4.0), Timed(9.0, 9.0), Timed(1.0, 1.0)], "b": [Timed(1.0, 8.0)]})
    assert text.splitlines()[2:] == ["| a | 2.0 | 4.0 | 1.00 | 1.00 |", "| b | 1.0 | 8.0 | 0.50 | 2.00 |"]


def test_a_run_that_fails_has_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dbt = tmp_path / "dbt"
    dbt.write_text("#!/bin/sh\necho the model is wrong\nexit 1\n")
    dbt.chmod(0o755)
    monkeypatch.setattr(dbt_models, "_wait_for_orphans", lambda: None)
    with pytest.raises(Unavailable, match="the model is wrong"):
        dbt_models.run(str(tmp_path / "python"), tmp_path)
