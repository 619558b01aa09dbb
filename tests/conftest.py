"""What holds for every suite."""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

# Spark's workers would take the first `python3` of the PATH, which need not have the project installed.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"

# On a busy machine a deadline measures the neighbours. CI searches the same examples each time; at home new ones.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
