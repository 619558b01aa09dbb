"""Lock providers: what keeps the writers of a table apart, each under the name that Hudi gives it."""
