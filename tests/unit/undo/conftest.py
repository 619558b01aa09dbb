"""Each test of this folder is run in several table versions."""

from tests.support.versions import parametrize_by_version as pytest_generate_tests
from tests.support.versions import table_version

__all__ = ["pytest_generate_tests", "table_version"]
