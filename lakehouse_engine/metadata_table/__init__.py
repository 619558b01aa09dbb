"""Reads Hudi's metadata table: files, statistics, filters and record locations without opening data files."""
