"""The bytes of table version 6: state files, plans, outcomes, commits, the archive; later versions keep the plans (hudi-format, part I)."""
