"""Makes a table from the files of another one, as it is or as it was.

The new table shares nothing that it could lose. Base files never change under their name, and are removed by name, so one file may have a
name in both tables (a hard link); if that is impossible it is copied. Slices with logs are merged into base files, because other writers
may append to logs.
"""

from lakehouse_engine.services.clone.files import CloneFiles
from lakehouse_engine.services.clone.service import clone_table

__all__ = ["CloneFiles", "clone_table"]
