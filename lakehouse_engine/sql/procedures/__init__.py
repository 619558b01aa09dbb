"""CALL: Hudi's procedures with Hudi's names, arguments and result columns."""
