"""The work done for each file of a commit, on an executor or in a thread."""
