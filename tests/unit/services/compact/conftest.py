"""What tests of this folder share."""

from tests.support.copying import copies

__all__ = ["copies"]
