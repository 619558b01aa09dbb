"""Hudi's metadata table, opened and read: files, statistics, filters and locations without looking into data files."""
