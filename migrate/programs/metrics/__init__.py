"""Evaluation, and the numbers of which each process has its share."""
