"""The only way to a completed instant: lock, recovery, transaction; and how the work of dead processes is taken back."""
