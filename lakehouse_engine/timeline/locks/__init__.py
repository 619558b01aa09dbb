"""Lock providers, which keep a table's writers apart, each under Hudi's name for it."""
