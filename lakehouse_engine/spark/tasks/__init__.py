"""Engine work in executors: the handshake, what is sent, and what comes back."""
