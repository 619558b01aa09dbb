"""Where the keys of a batch are stored, and what becomes of the stored rows."""
