"""What keeps rows from being written: constraints of contracts, and what strategies ask of their batches."""
