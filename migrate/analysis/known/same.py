"""What gives every process of a program the same, and what gives each its own."""

#: What computes with times, or reads them from a text: no clock is asked.
TIMES_GIVEN = (
    "datetime.datetime.strptime",
    "datetime.datetime.fromisoformat",
    "datetime.datetime.combine",
    "datetime.date.fromisoformat",
    "datetime.timedelta",
    "time.strptime",
)
#: Functions whose results follow from what they are given, and from files that all processes read.
PURE = (
    *TIMES_GIVEN,
    "builtins.",
    "math.",
    "cmath.",
    "operator.",
    "itertools.",
    "functools.",
    "collections.",
    "copy.",
    "re.",
    "string.",
    "os.path.",
    "os.listdir",
    "os.getenv",
    "os.environ",
    "glob.",
    "pathlib.",
    "argparse.",
    "dataclasses.",
    "types.",
    "enum.",
    *(
        f"{name}."
        for name in """tyro omegaconf hydra absl click fire typer toml tomllib tomli configparser configargparse
        yacs rich simple_parsing pyrallis draccus dacite jsonargparse munch easydict addict box ml_collections
        docopt""".split()
    ),
    "json.",
    "yaml.",
    "pickle.",
    "csv.",
    "io.",
    "codecs.",
    "gzip.",
    "numpy.",
    "scipy.",
    "pandas.",
    "torch.",
    "torchvision.",
    "torchtext.",
    "sklearn.datasets.",
    "sklearn.preprocessing.",
    "networkx.",
    "nltk.",
    "tiktoken.",
    "tqdm.",
)

#: Each process has its own of these, whatever is seeded.
OWN = (
    "time.",
    "datetime.",
    "uuid.",
    "secrets.",
    "os.urandom",
    "os.getpid",
    "os.getppid",
    "os.popen",
    "os.system",
    "os.times",
    "os.getloadavg",
    "os.uname",
    "platform.",
    "socket.",
    "subprocess.",
    "sys.stdin",
    "threading.",
    "os.stat",
    "multiprocessing.current_process",
    "tempfile.",
    "timeit.",
    "tracemalloc.",
    "gc.",
    "psutil.",
    "pynvml.",
    "GPUtil.",
    "resource.",
    "builtins.input",
    "builtins.id",
    "random.SystemRandom",
    "torch.seed",
    "torch.cuda.memory",
    "torch.cuda.max_memory",
    "torch.cuda.mem_get_info",
    "torch.cuda.Event",
    "torch.cuda.utilization",
    "torch.cuda.temperature",
    "concurrent.futures.as_completed",
    *(
        f"{library}.{name}"
        for library in ("multiprocessing", "torch.multiprocessing")
        for name in "Queue SimpleQueue JoinableQueue Pipe Manager Event Value Array Condition".split()
    ),
)

#: What draws from the stream of each library; `torch` also draws whenever a layer is made or drops units out.
DRAWN = {
    "random": ("random.", "torchtext.", "networkx."),
    "numpy": ("numpy.random.", "sklearn.", "scipy.stats.", "scipy.sparse.random"),
    "torch": ("torch.",),
}
#: Of these what only computes, describes or reads: scalers, metrics, statistics, fields, tokenizers, data sets.
_DESCRIBING = (
    *(
        f"sklearn.preprocessing.{name}"
        for name in """StandardScaler MinMaxScaler MaxAbsScaler RobustScaler PowerTransformer Normalizer Binarizer
        LabelEncoder LabelBinarizer MultiLabelBinarizer OneHotEncoder OrdinalEncoder FunctionTransformer
        PolynomialFeatures scale minmax_scale maxabs_scale robust_scale normalize binarize label_binarize""".split()
    ),
    *(
        f"sklearn.metrics.{part}{kind}"
        for part in ("", "cluster.", "pairwise.")
        for kind in """accuracy adjusted auc average_precision balanced classification cohen completeness confusion
        contingency cosine euclidean explained f1 fbeta fowlkes hamming homogeneity jaccard log_loss matthews
        max_error mean median multilabel mutual ndcg normalized pairwise precision r2 recall roc root top_k
        v_measure zero_one""".split()
    ),
    *(
        f"scipy.stats.{name}"
        for name in """zscore zmap pearsonr spearmanr kendalltau rankdata describe kurtosis iqr entropy gmean hmean
        linregress boxcox percentileofscore ttest_ ks_2samp mannwhitneyu wilcoxon""".split()
    ),
    *(f"torchtext.{part}" for part in ("vocab.", "data.utils.", "data.get_tokenizer", "datasets.")),
    *(f"torchtext.data.{name}" for name in ("Field", "LabelField", "NestedField", "RawField")),
    *(f"torchtext.legacy.{part}" for part in ("vocab.", "datasets.", "data.Field", "data.LabelField", "data.RawField")),
)
SEEDS = {
    "random": frozenset({"random.seed"}),
    "numpy": frozenset({"numpy.random.seed"}),
    "torch": frozenset({"torch.manual_seed", "torch.random.manual_seed"}),
}
SEEDS_ALL = frozenset(
    """transformers.set_seed transformers.trainer_utils.set_seed accelerate.utils.set_seed runtime.set_seed
    pytorch_lightning.seed_everything lightning.seed_everything lightning_fabric.seed_everything
    fastai.torch_core.set_seed ignite.utils.manual_seed monai.utils.set_determinism""".split()
)
#: All that sets the seed of a library.
SEEDERS = frozenset().union(*SEEDS.values(), SEEDS_ALL) | frozenset(
    """torch.cuda.manual_seed torch.cuda.manual_seed_all torch.cuda.random.manual_seed
    torch.cuda.random.manual_seed_all""".split()
)
#: Streams of their own, which draw from the system unless they are given a seed.
STREAMS = frozenset({"random.Random"}) | frozenset(
    f"numpy.random.{name}"
    for name in "RandomState default_rng SeedSequence PCG64 PCG64DXSM MT19937 Philox SFC64".split()
)
#: What takes a seed from the system.
RESEEDING = frozenset({"torch.seed", "torch.random.seed", "torch.cuda.seed", "torch.cuda.seed_all"})

#: Libraries of environments, by what is imported, and the calls that seed one.
ENVIRONMENTS = frozenset(
    """gym gymnasium atari_py ale_py vizdoom retro nes_py gym_super_mario_bros mujoco_py dm_control pybullet_envs
    procgen procgen_env minigrid gym_minigrid highway_env pettingzoo unityagents mlagents_envs envpool pommerman
    stable_baselines3 baselines""".split()
)

#: How many items the result of these has goes by the values that they are given, not only by their number.
UNEVEN = frozenset(
    f"{library}.{name}"
    for library in ("torch", "numpy")
    for name in "nonzero where unique masked_select argwhere flatnonzero extract".split()
)

#: What is true of a file at the time of asking.
PRESENCE = frozenset({f"os.path.{name}" for name in "exists lexists isfile isdir getmtime getsize".split()})
#: What ends a program, or what it does, after a time.
ALARMS = frozenset({"signal.alarm", "signal.setitimer"})
EXITS = frozenset({"sys.exit", "builtins.exit", "builtins.quit", "os._exit"})
#: What sets something for its whole process: a seed, a default, where it stands.
SETTING = (
    frozenset().union(*SEEDS.values(), SEEDS_ALL, RESEEDING)
    | frozenset(
        """torch.use_deterministic_algorithms torch.set_deterministic torch.set_grad_enabled torch.set_rng_state
        torch.set_float32_matmul_precision torch.set_flush_denormal torch.set_anomaly_enabled torch.hub.set_dir
        torch.cuda.set_device torch.cuda.set_rng_state torch.cuda.set_rng_state_all torch.random.set_rng_state
        torch.cuda.set_per_process_memory_fraction torch.cuda.manual_seed torch.cuda.manual_seed_all
        torch.cuda.random.manual_seed torch.cuda.random.manual_seed_all torch.mps.manual_seed torch.xpu.manual_seed
        torch.xpu.manual_seed_all numpy.random.set_state random.setstate numpy.seterr os.chdir os.putenv os.unsetenv
        locale.setlocale sys.setrecursionlimit tensorflow.set_random_seed tensorflow.random.set_seed""".split()
    )
    | frozenset(f"torch.set_default_{name}" for name in "dtype device tensor_type".split())
    | frozenset(f"torch.set_num_{name}threads" for name in ("", "interop_"))
    | frozenset(
        f"{library}multiprocessing.set_{name}"
        for library in ("", "torch.")
        for name in ("start_method", "sharing_strategy")
    )
    | frozenset(f"os.environ.{name}" for name in "setdefault update pop clear".split())
    | frozenset(f"sys.path.{name}" for name in "append insert extend remove pop".split())
)
SIZES = frozenset({"size", "dim", "numel", "nelement", "ndimension", "element_size"})
SIZE_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "size", "T"})
#: What follows from the code that made a tensor or model, not from what is in it.
FORMS = frozenset({"requires_grad", "is_leaf", "training", "is_cuda"})
MASKS = frozenset(
    "bool eq ne gt ge lt le isnan isfinite isinf nonzero logical_and logical_or logical_xor logical_not".split()
)
#: Exceptions that a program meets for reasons that all processes share.
SHARED_TROUBLE = frozenset(
    """StopIteration KeyboardInterrupt ImportError ModuleNotFoundError FileNotFoundError FileExistsError KeyError
    AttributeError NameError IndexError""".split()
)
#: Those of them that the samples which a process has in its step cannot cause.
SHARED_IN_STEPS = SHARED_TROUBLE - {"KeyError", "IndexError", "FileNotFoundError", "FileExistsError"}
#: Calls that give as many items as their first argument has.
PASSING = frozenset(
    "builtins.enumerate builtins.reversed builtins.sorted builtins.list builtins.tuple builtins.iter tqdm.tqdm".split()
)


#: Functions that draw, of libraries that otherwise compute.
DRAWING = (
    "numpy.random.",
    "scipy.stats.",
    "torch.rand",
    "torch.initial_seed",
    "torch.get_rng_state",
    "torch.cuda.initial_seed",
    "torch.normal",
    "torch.bernoulli",
    "torch.multinomial",
    "torch.poisson",
    "torch.distributions.",
    "torch.nn.functional.dropout",
    "torch.nn.functional.alpha_dropout",
    "torch.nn.functional.gumbel_softmax",
    "torch.nn.init.",
    "torch.utils.data.",
    "networkx.generators",
)


#: What is made of `torch.nn` without weights, and draws nothing when it is called, either.
_PLAIN_LAYERS = frozenset(
    """Identity Flatten Unflatten ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Sigmoid LogSigmoid Tanh Tanhshrink
    Hardtanh Hardshrink Softshrink Hardsigmoid Hardswish Softplus Softsign Softmin Softmax Softmax2d LogSoftmax GLU
    Threshold Upsample UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle PixelUnshuffle ChannelShuffle Fold Unfold
    CosineSimilarity PairwiseDistance Sequential ModuleList ModuleDict""".split()
) | {
    f"{kind}{dimensions}d"
    for kind in """MaxPool AvgPool LPPool AdaptiveMaxPool AdaptiveAvgPool MaxUnpool ZeroPad ConstantPad ReflectionPad
    ReplicationPad CircularPad""".split()
    for dimensions in (1, 2, 3)
}

#: What gives numbers and choices of chance, and the streams that do.
CHANCE = (
    "random.",
    "numpy.random.",
    *(f"torch.{name}" for name in "rand normal bernoulli multinomial poisson distributions.".split()),
)
#: What gives plain numbers of Python, which compare as True or False.
PYTHON_NUMBERS = frozenset(f"random.{name}" for name in "random uniform randint randrange gauss".split())
DRAWING_METHODS = frozenset(
    """sample rsample normal_ uniform_ random_ bernoulli_ exponential_ cauchy_ log_normal_ geometric_ multinomial
    bernoulli""".split()
)


def is_chance(name: str) -> bool:
    """Whether what a function gives is a matter of chance."""
    return name.startswith(CHANCE) and not name.startswith("torch.random.")


def draws_from(library: str, name: str) -> bool:
    """Whether a function draws from the stream of a library, or may."""
    return name.startswith(DRAWN[library]) and not name.startswith(_DESCRIBING)


def draws(name: str) -> bool:
    """Whether a function of a library draws."""
    is_layer = name.startswith("torch.nn.") and not name.startswith("torch.nn.functional.")
    is_plain = name.endswith("Loss") or name.rpartition(".")[2] in _PLAIN_LAYERS
    return (name.startswith(DRAWING) and not name.startswith(_DESCRIBING)) or (is_layer and not is_plain)


def is_own(name: str) -> bool:
    """Whether a function gives each process something of its own, by its clock or the system."""
    return name.startswith(OWN) and not name.startswith(TIMES_GIVEN)
