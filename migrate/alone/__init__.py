"""A program that runs in several processes, as one process runs it.

What several processes are for goes away: joining a group, starting them, wrapping the model, sharing the samples out,
telling each other. What is left is a program that any rule can convert; the accelerator gives it its processes back.
"""

from migrate.alone.stage import Stage, stages

__all__ = ["Stage", "stages"]
