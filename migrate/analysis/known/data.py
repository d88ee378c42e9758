"""Data sets, samplers and loaders, and what draws random numbers on the way."""

from migrate.analysis.known.table import Computes, Gives, Makes, Other, Passes, Row, each
from migrate.analysis.roles import Role

_DATASET = (0, "dataset")

_TORCH: tuple[Row, ...] = (
    Other("torch.utils.data.*"),
    Makes("torch.utils.data.random_split", Role.DATASET),
    Makes("torch.utils.data.dataset.*", Role.DATASET),
    *each(
        Makes,
        ("torch.utils.data",),
        "Dataset IterableDataset TensorDataset ConcatDataset ChainDataset StackDataset Subset MapDataPipe IterDataPipe",
        role=Role.DATASET,
    ),
    *each(Makes, ("torch.utils.data.datapipes",), "iter.* map.*", role=Role.DATASET),
    *each(
        Makes,
        ("torch.utils.data", "torch.utils.data.sampler"),
        "Sampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler BatchSampler",
        role=Role.SAMPLER,
        over=(0, "data_source"),
    ),
    *each(
        Makes,
        ("torch.utils.data", "torch.utils.data.distributed"),
        "DistributedSampler",
        role=Role.SAMPLER,
        over=_DATASET,
    ),
    *each(
        Makes, ("torch_geometric.loader",), "ImbalancedSampler DynamicBatchSampler", role=Role.SAMPLER, over=_DATASET
    ),
    *each(Computes, ("torch.utils.data",), "default_collate default_convert _utils.collate.*"),
)

#: `torch.utils.data.DataLoader` and classes that derive from it and batch as it does.
_LOADERS: tuple[Row, ...] = tuple(
    Makes(name, Role.LOADER, over=_DATASET)
    for name in (
        "torch.utils.data.DataLoader torch.utils.data.dataloader.DataLoader torch_geometric.loader.DataLoader "
        "torch_geometric.loader.dataloader.DataLoader torch_geometric.data.DataLoader monai.data.DataLoader "
        "torchdata.stateful_dataloader.StatefulDataLoader"
    ).split()
)

#: Loaders of other kinds. `prepare` takes none of them, or could not share out what they make.
_FEEDS: tuple[Row, ...] = (
    *each(Makes, ("timm.data", "timm.data.loader"), "create_loader PrefetchLoader", role=Role.FEED, over=_DATASET),
    *each(
        Makes,
        ("torch_geometric.loader",),
        "NeighborLoader LinkNeighborLoader HGTLoader ClusterLoader GraphSAINT*Sampler ShaDowKHopSampler "
        "RandomNodeLoader RandomNodeSampler DenseDataLoader DataListLoader NeighborSampler TemporalDataLoader",
        role=Role.FEED,
        over=(0, "data"),
    ),
    *each(
        Makes,
        ("torchtext.data", "torchtext.legacy.data"),
        "Iterator BucketIterator BPTTIterator",
        role=Role.FEED,
        over=_DATASET,
    ),
    *each(
        Gives,
        ("torchtext.data", "torchtext.legacy.data"),
        "Iterator.splits BucketIterator.splits BPTTIterator.splits",
        elements=(Role.FEED,) * 3,
    ),
    *each(
        Makes,
        ("nvidia.dali.plugin.pytorch",),
        "DALIClassificationIterator DALIGenericIterator",
        role=Role.FEED,
        over=(0, "pipelines"),
    ),
    *each(Makes, ("ffcv", "ffcv.loader"), "Loader", role=Role.FEED),
    Makes("webdataset.WebLoader", Role.FEED, over=_DATASET),
    Makes("monai.data.ThreadDataLoader", Role.FEED, over=_DATASET),
    *each(Makes, ("dgl.dataloading",), "DataLoader GraphDataLoader", role=Role.FEED),
)

#: Where the constructors and functions are that download with `download=True`.
DOWNLOADING = ("torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.", "torchtext.legacy.datasets.")
_DATASETS: tuple[Row, ...] = (
    *each(Makes, ("torchvision", "torchaudio", "torchtext", "torchtext.legacy"), "datasets.*", role=Role.DATASET),
    *each(Other, ("torchvision.datasets", "torchaudio.datasets"), "utils.*"),
    *each(Other, ("torchvision.datasets.folder",), "default_loader find_classes make_dataset *_loader"),
    Makes("torchvision.datasets.samplers.*", Role.SAMPLER),
    Passes("torchvision.datasets.wrap_dataset_for_transforms_v2", _DATASET),
    *each(Makes, ("torchtext", "torchtext.legacy"), "datasets.*.splits", role=Role.DATASET),
    Makes("torch_geometric.datasets.[A-Z]*", Role.DATASET),
    Makes("monai.data.*Dataset", Role.DATASET),
    Makes("segmentation_models_pytorch.datasets.[A-Z]*", Role.DATASET),
    *each(Makes, ("timm.data",), "create_dataset ImageDataset IterableImageDataset", role=Role.DATASET),
    Other("torchvision.transforms.*"),
)

#: What runs over one iterable.
_ITERATORS: tuple[Row, ...] = (
    *each(Passes, ("builtins",), "iter enumerate reversed", role=Role.ITERATOR),
    *each(Passes, ("itertools",), "islice cycle", role=Role.ITERATOR),
    Passes("builtins.list"),
    Passes("builtins.tuple"),
)

ROWS = (*_TORCH, *_LOADERS, *_FEEDS, *_DATASETS, *_ITERATORS)

#: Split data at random, once in a run: the library whose seed decides, and the argument that takes a seed of its own.
SPLITS = {
    "torch.utils.data.random_split": ("torch", "generator"),
    "torch.utils.data.dataset.random_split": ("torch", "generator"),
    "sklearn.model_selection.train_test_split": ("numpy", "random_state"),
}
#: What a loader that is given no `collate_fn` puts its batches together with, under each name.
PUTS_ROWS_FIRST = frozenset(
    f"torch.utils.data.{module}default_collate" for module in ("", "dataloader.", "_utils.collate.")
)
#: Draw random numbers; a data set that does so for each sample cannot be shared out without changing what it draws.
RANDOM_PREFIXES = ("random.", "numpy.random.", "torch.rand", "torch.normal", "torch.bernoulli", "torch.multinomial")
RANDOM_TRANSFORM = tuple(
    f"torchvision.transforms.{module}{name}"
    for module in ("", "transforms.", "v2.")
    for name in "Random ColorJitter ElasticTransform AutoAugment RandAugment TrivialAugmentWide AugMix".split()
)
RANDOM_SEEDS = frozenset(
    {"random.seed", "numpy.random.seed", "random.Random", "numpy.random.RandomState", "numpy.random.default_rng"}
)
