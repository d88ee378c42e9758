"""A converted notebook whose training runs on several processes: functions that `notebook_launcher` starts.

from migrate.launching import NotStarted, started
"""

from migrate.launching.refusal import NotStarted
from migrate.launching.start import started

__all__ = ["NotStarted", "started"]
