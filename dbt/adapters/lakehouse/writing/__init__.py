"""What writes of models, seeds and snapshots do to tables."""
