"""The bytes of table version 6: state files, plans and outcomes, commits, the archive. Later versions share the plans (hudi-format, I)."""
