"""Upserts into tables of more and more files, with and without a record index."""
