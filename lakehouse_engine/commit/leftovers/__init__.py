"""Files that no commit names or that somebody lost: whose they are, and what becomes of them under the lock."""
