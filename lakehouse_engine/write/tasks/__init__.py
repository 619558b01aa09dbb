"""What runs per file of a commit, on an executor or in a thread."""
