"""Modules that several threads load at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse_engine import api

ROOT = str(Path(__file__).resolve().parents[2])
SCRIPT = """
import sys, threading, time
from lakehouse_engine.loading import PYSPARK, load_module

inside, errors = threading.Event(), []

class Pause:
    # Holds the first thread up in the middle of `pyspark`, until the second one has begun with `pyspark.sql`.
    def find_spec(self, name, path=None, target=None):
        if name == "pyspark.conf":
            inside.set()
            time.sleep(3)

sys.meta_path.insert(0, Pause())

def attempt(job):
    try:
        job()
    except ImportError as error:
        errors.append(error)

def first():
    load_module(PYSPARK)
    from pyspark import SparkContext

def second():
    inside.wait()
    load_module("lakehouse_engine.spark.settings")

threads = [threading.Thread(target=attempt, args=[job]) for job in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""


def test_two_threads_that_need_pyspark_at_once_both_get_it() -> None:
    environment = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_a_package_whose_modules_load_when_used_has_no_others() -> None:
    assert api.names.__name__ == "lakehouse_engine.api.names"
    for name in ("nothing", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"'lakehouse_engine.api' has no attribute '{name}'"):
            getattr(api, name)
