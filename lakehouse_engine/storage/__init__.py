"""Files as bytes: the only access to a file system or object store."""
