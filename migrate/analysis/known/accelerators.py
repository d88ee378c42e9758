"""Programs that are converted already: who runs their steps."""

from migrate.analysis.known.table import Makes, Row
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = tuple(
    Makes(name, Role.ACCELERATOR)
    for name in (
        "accelerate.Accelerator accelerate.accelerator.Accelerator runtime.Accelerator lightning.Fabric "
        "lightning.fabric.Fabric lightning.fabric.fabric.Fabric lightning_fabric.Fabric"
    ).split()
)
