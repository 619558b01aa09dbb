"""What each action changes in the metadata table, derived from the files that it wrote (design: metadata table, section 7)."""
