"""Files that no commit names, or that were lost: their owners, and what happens to them under the lock."""
