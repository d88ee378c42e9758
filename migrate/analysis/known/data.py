"""Data sets, samplers, loaders, and what passes a loader through."""

from migrate.analysis.known.table import Makes, Passes
from migrate.analysis.roles import Role

MAKES = (
    Makes("torch.utils.data.DataLoader", Role.LOADER, over=(0, "dataset")),
    Makes("torch.utils.data.dataloader.DataLoader", Role.LOADER, over=(0, "dataset")),
    Makes("torch_geometric.loader.DataLoader", Role.LOADER, over=(0, "dataset")),
    Makes("torch.utils.data.*", Role.DATASET),
    Makes("torch.utils.data.random_split", Role.DATASET),
    *(
        Makes(f"torch.utils.data.{module}{name}", Role.SAMPLER)
        for module in ("", "sampler.", "distributed.")
        for name in (
            "Sampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler BatchSampler "
            "DistributedSampler"
        ).split()
    ),
    Makes("torchvision.datasets.*", Role.DATASET),
    Makes("torchvision.transforms.*", Role.UNKNOWN),
    Makes("datasets.load_dataset", Role.DATASET),
)

PASSES = (
    Passes("tqdm.tqdm", role=Role.ITERATOR),
    Passes("tqdm.auto.tqdm", role=Role.ITERATOR),
    Passes("tqdm.notebook.tqdm", role=Role.ITERATOR),
    Passes("tqdm.std.tqdm", role=Role.ITERATOR),
    Passes("builtins.iter", role=Role.ITERATOR),
    Passes("builtins.enumerate", role=Role.ITERATOR),
    Passes("builtins.reversed", role=Role.ITERATOR),
    Passes("itertools.islice", role=Role.ITERATOR),
    Passes("itertools.cycle", role=Role.ITERATOR),
    Passes("builtins.list"),
    Passes("builtins.tuple"),
)

BARS = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm"})
RANGE_BARS = frozenset({"tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"})

#: Draw random numbers; a data set that does so for each sample cannot be shared out without changing what it draws.
RANDOM_PREFIXES = ("random.", "numpy.random.", "torch.rand", "torch.normal", "torch.bernoulli", "torch.multinomial")
RANDOM_TRANSFORM = "torchvision.transforms.Random"
RANDOM_SEEDS = frozenset(
    {"random.seed", "numpy.random.seed", "random.Random", "numpy.random.RandomState", "numpy.random.default_rng"}
)
