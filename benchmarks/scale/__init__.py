"""Upserts of small and large batches into tables of few and many files: ours by both routes, beside Iceberg and Hudi."""
