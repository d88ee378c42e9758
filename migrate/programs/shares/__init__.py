"""The numbers of which each process has its share: what joins them, and what is decided by them."""
