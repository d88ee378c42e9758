"""Which samples each process reads, in which order, and which of them count."""
