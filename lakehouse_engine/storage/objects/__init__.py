"""Storages in object stores, over obstore (docs/adr/0035)."""
