"""CALL: Hudi's procedures, under Hudi's names of procedures, arguments and result columns."""
