"""Records of a metadata table, derived from the data files that they are about."""
