"""Models and their layers: torch, torchvision, torchaudio and libraries of architectures."""

from migrate.analysis.known.table import Computes, Gives, Makes, Other, Passes, Row, each
from migrate.analysis.roles import Role

_LAYERS: tuple[Row, ...] = (
    Makes("torch.nn.*", Role.MODEL),
    *each(Makes, ("torch.nn",), "Embedding.from_pretrained EmbeddingBag.from_pretrained", role=Role.MODEL),
    *each(Computes, ("torch.nn",), "functional.* init.* grad.* utils.* parallel.*"),
    *each(Other, ("torch.nn",), "attention.* modules.utils.* modules.module.register_* factory_kwargs"),
    *each(Other, ("torch.nn",), "ParameterList ParameterDict modules.container.ParameterList"),
    *each(Makes, ("torch.nn",), "Parameter Buffer UninitializedParameter UninitializedBuffer", role=Role.TENSOR),
    Makes("torch.nn.parameter.*", Role.TENSOR),
    Passes("torch.nn.SyncBatchNorm.convert_sync_batchnorm", (0, "module")),
    *each(
        Passes,
        ("torch.nn.utils",),
        "spectral_norm weight_norm remove_spectral_norm remove_weight_norm parametrizations.spectral_norm "
        "parametrizations.weight_norm parametrizations.orthogonal parametrize.register_parametrization",
        argument=(0, "module"),
    ),
    Passes("torch.compile", (0, "model")),
    Passes("torch.jit.script", (0, "obj")),
    Passes("torch.jit.trace", (0, "func")),
    Makes("torch.jit.load", Role.MODEL),
    Makes("torch.jit.ScriptModule", Role.MODEL),
    Makes("torch.hub.load", Role.MODEL),
    Makes("torchvision.ops.[A-Z]*", Role.MODEL),
    Makes("torch_geometric.nn.[A-Z]*", Role.MODEL),
    Other("torch_geometric.nn.DataParallel"),
    Makes("dgl.nn.[A-Z]*", Role.MODEL),
    Makes("bitsandbytes.nn.[A-Z]*", Role.MODEL),
    Makes("apex.normalization.[A-Z]*", Role.MODEL),
)

_ARCHITECTURES: tuple[Row, ...] = (
    Makes("torchvision.models.*", Role.MODEL),
    Other("torchvision.models.*_Weights"),
    *each(
        Other,
        ("torchvision.models",),
        "get_weight get_model_weights get_model_builder list_models feature_extraction.get_graph_node_names",
    ),
    *each(Other, ("torchvision.models",), "GoogLeNetOutputs InceptionOutputs"),
    Makes("torchaudio.models.*", Role.MODEL),
    Other("torchaudio.models.decoder.*"),
    Makes("torchaudio.pipelines.*.get_model", Role.MODEL),
    Makes("segmentation_models_pytorch.*", Role.MODEL),
    Makes("segmentation_models_pytorch.*.from_pretrained", Role.MODEL),
    *each(Other, ("segmentation_models_pytorch",), "utils.* metrics.* encoders.get_preprocessing_*"),
    *each(Makes, ("efficientnet_pytorch",), "EfficientNet EfficientNet.from_*", role=Role.MODEL),
    Makes("pretrainedmodels.*", Role.MODEL),
    Other("pretrainedmodels.utils.*"),
    Makes("vit_pytorch.[A-Z]*", Role.MODEL),
    *(
        Makes(name, Role.MODEL)
        for name in (
            "TorchCRF.CRF axial_attention.Axial* conformer.Conformer facenet_pytorch.InceptionResnetV1 "
            "facenet_pytorch.MTCNN geffnet.create_model linformer.Linformer* mlp_mixer_pytorch.MLPMixer "
            "performer_pytorch.Performer* perceiver_pytorch.Perceiver* pytorchcv.model_provider.get_model "
            "pytorch_tcn.TCN reformer_pytorch.Reformer* resnest.torch.resnest* resnet_pytorch.ResNet "
            "routing_transformer.Routing* sinkhorn_transformer.Sinkhorn* sru.SRU torchcrf.CRF "
            "torchreid.models.build_model x_transformers.*Transformer* x_transformers.Encoder "
            "x_transformers.Decoder"
        ).split()
    ),
    Makes("monai.networks.nets.[A-Z]*", Role.MODEL),
    Makes("sentence_transformers.SentenceTransformer", Role.MODEL),
    Makes("open_clip.create_model", Role.MODEL),
    Gives("open_clip.create_model_and_transforms", (Role.MODEL, None, None)),
    Gives("clip.load", (Role.MODEL, None)),
)

#: Layers of PyTorch that have weights: where one is made, there it computes.
WITH_WEIGHTS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear LazyLinear Embedding EmbeddingBag PReLU LayerNorm GroupNorm "
        "BatchNorm1d BatchNorm2d BatchNorm3d "
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d RNN LSTM GRU RNNCell LSTMCell GRUCell "
        "MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder "
        "TransformerDecoderLayer"
    ).split()
)

#: Copies that follow the weights of a model: they are evaluated, never trained.
_AVERAGES: tuple[Row, ...] = (
    Makes("torch.optim.swa_utils.AveragedModel", Role.AVERAGE, over=(0, "model")),
    *each(
        Makes,
        ("timm.utils", "timm.utils.model_ema"),
        "ModelEma ModelEmaV2 ModelEmaV3",
        role=Role.AVERAGE,
        over=(0, "model"),
    ),
    Makes("torch_ema.ExponentialMovingAverage", Role.AVERAGE, over=(0, "parameters")),
    Makes("ema_pytorch.EMA", Role.AVERAGE, over=(0, "model")),
    Makes("diffusers.training_utils.EMAModel", Role.AVERAGE, over=(0, "parameters")),
)

#: What torch.load and its relatives give.
_CHECKPOINTS: tuple[Row, ...] = (
    Makes("torch.load", Role.CHECKPOINT),
    Makes("torch.hub.load_state_dict_from_url", Role.CHECKPOINT),
    Makes("torch.utils.model_zoo.load_url", Role.CHECKPOINT),
    Makes("torchvision.models.utils.load_state_dict_from_url", Role.CHECKPOINT),
)

ROWS = (*_LAYERS, *_ARCHITECTURES, *_AVERAGES, *_CHECKPOINTS)

#: Functions that give what comes first the layer that comes last: `setattr(model, "fc", nn.Linear(8, 2))`.
GIVE_LAYERS = frozenset({"builtins.setattr", "torch.nn.utils.parametrize.register_parametrization"})
#: Methods of a model, or of a container of layers, that take one.
TAKE_LAYERS = frozenset({"add_module", "register_module", "register_parameter", "append", "insert"})
#: Functions that give a layer parameters of their own in the place of its weight.
WITH_OTHER_LAYERS = frozenset(f"torch.nn.utils.{name}" for name in ("weight_norm", "parametrizations.weight_norm"))
