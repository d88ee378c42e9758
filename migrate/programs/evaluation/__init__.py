"""Evaluations that are exact on several processes: who takes which rows, and what stays whole."""
