"""The one way to a completed instant: the lock, bringing a table to order, the transaction; and how what died is taken back."""
