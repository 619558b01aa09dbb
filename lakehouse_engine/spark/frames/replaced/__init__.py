"""Rows of base files that logs replace, in the form in which a filter of Spark looks them up."""
