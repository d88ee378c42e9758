"""timm: its models and layers. Its optimizers, schedulers, losses, loaders and scalers stand with those of others."""

from migrate.analysis.known.table import Makes, Other, Passes, Row, each
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = (
    *each(Makes, ("timm", "timm.models", "timm.models.factory"), "create_model", role=Role.MODEL),
    Makes("timm.models.[A-Z]*", Role.MODEL),
    Makes("timm.layers.[A-Z]*", Role.MODEL),
    *each(Other, ("timm.layers", "timm.models.layers"), "Format"),
    *each(
        Passes, ("timm.models", "timm.layers"), "convert_sync_batchnorm convert_splitbn_model", argument=(0, "module")
    ),
)
