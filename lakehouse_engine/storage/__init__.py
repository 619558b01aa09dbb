"""Files as bytes: the one door to a file system or an object store."""
