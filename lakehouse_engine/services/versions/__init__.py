"""Changes a table's version, and previews such a change (docs/adr/0063)."""

from lakehouse_engine.services.versions.older import bring_to_six, is_brought_to_six
from lakehouse_engine.services.versions.service import Compacting, change_version

__all__ = ["Compacting", "bring_to_six", "change_version", "is_brought_to_six"]
