"""Clusterings of a table of many small files, ours beside Hudi's, Delta's, Iceberg's and what pyarrow alone takes for it."""
