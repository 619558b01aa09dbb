"""The bytes of table versions 8 and 9: names, commit metadata, history, properties (hudi-format, part II)."""
