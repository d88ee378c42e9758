"""Converts PyTorch training scripts: any device, any number of processes, the same numbers."""

__version__ = "1.0.0"
