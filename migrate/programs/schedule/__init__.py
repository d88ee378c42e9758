"""Learning rates and what steps them."""
