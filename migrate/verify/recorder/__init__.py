"""What the child processes of a verification run: it alone knows torch, and `migrate` itself never imports it."""
