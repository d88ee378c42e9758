"""Loss functions: objects without weights of their own that fold a batch into one number."""

from migrate.analysis.known.table import Makes, Row, each
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = (
    *each(
        Makes,
        ("torch.nn",),
        "L1Loss MSELoss CrossEntropyLoss CTCLoss NLLLoss PoissonNLLLoss GaussianNLLLoss KLDivLoss BCELoss "
        "BCEWithLogitsLoss MarginRankingLoss HingeEmbeddingLoss MultiLabelMarginLoss HuberLoss SmoothL1Loss "
        "SoftMarginLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss MultiMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss",
        role=Role.CRITERION,
    ),
    Makes("torch.nn.NLLLoss2d", Role.CRITERION, old=True),
    Makes("torch.nn.modules.loss.*", Role.CRITERION),
    # It has a layer inside, and so weights.
    Makes("torch.nn.modules.loss.LinearCrossEntropyLoss", Role.MODEL),
    *each(
        Makes,
        ("timm.loss",),
        "LabelSmoothingCrossEntropy SoftTargetCrossEntropy JsdCrossEntropy BinaryCrossEntropy",
        role=Role.CRITERION,
    ),
    *each(Makes, ("timm.loss",), "AsymmetricLossMultiLabel AsymmetricLossSingleLabel", role=Role.CRITERION),
    Makes("segmentation_models_pytorch.losses.[A-Z]*", Role.CRITERION),
    Makes("segmentation_models_pytorch.utils.losses.[A-Z]*", Role.CRITERION),
)
