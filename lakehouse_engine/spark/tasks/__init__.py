"""Work of the engine in executors: what they are asked first, what they are sent, and what comes back."""
