"""Table services of Hudi's metadata table."""
