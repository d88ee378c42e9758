"""Objects that add up what a program measures. Functions of scikit-learn take host arrays: `tensors.HOST_PREFIXES`."""

from migrate.analysis.known.table import Makes, Row, each
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = (
    Makes("torchmetrics.[A-Z]*", Role.METRIC),
    Makes("torcheval.metrics.[A-Z]*", Role.METRIC),
    Makes("ignite.metrics.[A-Z]*", Role.METRIC),
    *each(Makes, ("evaluate",), "load combine", role=Role.METRIC),
    Makes("datasets.load_metric", Role.METRIC),
)
