"""Every test here is in the world of the explorer, with one thread for Arrow: what takes time is the number of runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.explorer.world import installed


@pytest.fixture(scope="module", autouse=True)
def world() -> Iterator[None]:
    threads, of_files, level = pa.cpu_count(), pa.io_thread_count(), logging.root.manager.disable
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    logging.disable(logging.WARNING)  # of dead writers and wrong clocks, of which there are many
    try:
        with installed():
            yield
    finally:
        logging.disable(level)
        pa.set_cpu_count(threads)
        pa.set_io_thread_count(of_files)
