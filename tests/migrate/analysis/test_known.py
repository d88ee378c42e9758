"""The tables of libraries: rows name what is there, every shape works through the analysis, and users can add rows."""

import ast
import importlib
import re
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate import cli
from migrate.analysis import analyse
from migrate.analysis.known import ROWS, TABLES, amp, devices, distributed, progress, training, user
from migrate.analysis.known.lookup import WILD, Tables
from migrate.analysis.known.table import Computes, Makes, Other
from migrate.analysis.roles import PLACE, Role
from migrate.errors import UsageError
from migrate.options import Options
from migrate.pipeline import run, run_text
from migrate.source.project import Project, SourceFile

# --------------------------------------------------------------------------------------------- rows and the real torch

SETS = (
    amp.AUTOCAST,
    devices.SET_DEVICE,
    distributed.COLLECTIVES,
    distributed.DATA_PARALLEL,
    distributed.DISTRIBUTED_DATA_PARALLEL,
    distributed.LAUNCHERS,
    distributed.PIPELINES,
    distributed.PROCESS_GROUPS,
    distributed.RPC,
    distributed.SHARDING,
    training.AUTOGRAD_BACKWARD,
    training.CLIPPING.keys(),
    training.NO_GRAD,
)
#: Where a module is no longer importable under the name of its function (`torch.multiprocessing.spawn`), or another
#: package must be installed for it.
ELSEWHERE = re.compile(r"apex\.|torch\.multiprocessing\.spawn\.|torch\.utils\.tensorboard\.")


def resolves(name):
    """Whether torch has something under a dotted name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        try:
            for part in parts[end:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


def whole_part(row):
    """A name as far as it has no wildcards, and speaks of no object that calling something gives."""
    if "()" in row.name:
        return row.name.partition("()")[0]
    return WILD.split(row.name)[0].rpartition(".")[0] if WILD.search(row.name) else row.name


@pytest.fixture(scope="module")
def torch():
    found = pytest.importorskip("torch")
    if tuple(int(part) for part in found.__version__.split(".")[:2]) < (2, 13):
        pytest.skip("the tables name what torch 2.13 has")
    return found


def test_every_row_of_torch_names_something_that_is_there(torch):
    names = {whole_part(row) for row in ROWS if row.name.startswith("torch.") and not row.old}
    names |= {name for names in SETS for name in names}
    assert not sorted(name for name in names if not ELSEWHERE.match(name) and not resolves(name))


def test_rows_that_are_marked_old_are_not_in_torch_of_today(torch):
    gone = {"torch.npu.is_available"}
    assert gone == {row.name for row in ROWS if row.old and row.name.startswith("torch.") and not resolves(row.name)}


def classes(module, base):
    return {
        name
        for name in dir(module)
        if isinstance(thing := getattr(module, name), type) and issubclass(thing, base) and name[0] != "_"
    }


def test_every_optimizer_of_torch_is_one(torch):
    found = classes(torch.optim, torch.optim.Optimizer)
    assert len(found) > 10
    assert {TABLES.row(f"torch.optim.{name}").role for name in found} == {Role.OPTIMIZER}


def test_every_scheduler_of_torch_is_one_and_knows_its_optimizer(torch):
    import inspect

    from torch.optim import lr_scheduler

    for name in classes(lr_scheduler, lr_scheduler.LRScheduler):
        row = TABLES.row(f"torch.optim.lr_scheduler.{name}")
        parameters = list(inspect.signature(getattr(lr_scheduler, name)).parameters)
        assert (row.role, row.over) == (Role.SCHEDULER, (parameters.index("optimizer"), "optimizer")), name


#: Loss functions that hold a layer.
WITH_WEIGHTS = {"LinearCrossEntropyLoss"}


def test_every_loss_of_torch_is_a_loss_function(torch):
    from torch.nn.modules import loss

    found = classes(loss, loss._Loss) - WITH_WEIGHTS
    assert len(found) > 15
    for name in found:
        assert TABLES.row(f"torch.nn.modules.loss.{name}").role is Role.CRITERION, name
        if hasattr(torch.nn, name):
            assert TABLES.row(f"torch.nn.{name}").role is Role.CRITERION, name


def test_every_module_of_torch_is_a_model_or_a_loss_function_or_known_not_to_be_asked_for(torch):
    from torch.nn.modules.loss import _Loss

    holders = {"ParameterList", "ParameterDict"}
    found = classes(torch.nn, torch.nn.Module) - classes(torch.nn, _Loss) - holders | WITH_WEIGHTS
    assert {TABLES.role_of_base(f"torch.nn.{name}") for name in found} == {Role.MODEL}


def test_data_sets_and_samplers_of_torch(torch):
    from torch.utils import data

    samplers = classes(data, data.Sampler)
    assert {TABLES.row(f"torch.utils.data.{name}").role for name in samplers} == {Role.SAMPLER}
    sets = classes(data, data.Dataset) - {"DFIterDataPipe"}
    assert {TABLES.row(f"torch.utils.data.{name}").role for name in sets} == {Role.DATASET}
    for name in set(data.__all__) - samplers - sets - {"DataLoader", "random_split"}:
        assert not isinstance(TABLES.row(f"torch.utils.data.{name}"), Makes), name


# -------------------------------------------------------------------------------------------------- one name, one role

ROLES = {
    "torch.optim.adam.Adam": Role.OPTIMIZER,
    "torch.optim.<any>": Role.OPTIMIZER,
    "torch.optim.Optimizer": Role.OPTIMIZER,
    "torch.optim.lr_scheduler._LRScheduler": Role.SCHEDULER,
    "torch.optim.lr_scheduler.<any>": Role.SCHEDULER,
    "torch.optim.swa_utils.SWALR": Role.SCHEDULER,
    "torch.optim.swa_utils.AveragedModel": Role.AVERAGE,
    "torch.optim.swa_utils.update_bn": None,
    "torch.optim.Adam.step": None,
    "torch.nn.modules.conv.Conv2d": Role.MODEL,
    "torch.nn.Linear.forward": None,
    "torch.nn.attention.sdpa_kernel": None,
    "torch.nn.parameter.Parameter": Role.TENSOR,
    "torch.nn.functional.relu": None,
    "torch.cuda.HalfTensor": Role.TENSOR,
    "torch.cuda.synchronize": None,
    "torchvision.models.resnet50": Role.MODEL,
    "torchvision.models.detection.fasterrcnn_resnet50_fpn": Role.MODEL,
    "torchvision.models.<any>": Role.MODEL,
    "torchvision.models.ResNet50_Weights": None,
    "torchvision.models.resnet.ResNet50_Weights": None,
    "torchvision.models.ResNet50_Weights.DEFAULT.transforms": None,
    "torchvision.models.get_weight": None,
    "torchvision.models.get_model": Role.MODEL,
    "torchvision.ops.FeaturePyramidNetwork": Role.MODEL,
    "torchvision.ops.nms": None,
    "torchvision.datasets.CIFAR10": Role.DATASET,
    "torchvision.datasets.utils.download_url": None,
    "transformers.BertModel": Role.MODEL,
    "transformers.BertModel.from_pretrained": Role.MODEL,
    "transformers.models.bert.modeling_bert.BertForSequenceClassification.from_pretrained": Role.MODEL,
    "transformers.AutoModelForCausalLM.from_config": Role.MODEL,
    "transformers.GPT2LMHeadModel": Role.MODEL,
    "transformers.PreTrainedModel": Role.MODEL,
    "transformers.TFBertModel.from_pretrained": None,
    "transformers.AutoTokenizer.from_pretrained": None,
    "transformers.AutoConfig.from_pretrained": None,
    "transformers.CLIPProcessor.from_pretrained": None,
    "transformers.Trainer": None,
    "transformers.DataCollatorForTokenClassification": None,
    "transformers.ForcedBOSTokenLogitsProcessor": None,
    "transformers.modeling_outputs.BaseModelOutput": None,
    "transformers.optimization.AdamW": Role.OPTIMIZER,
    "timm.create_model": Role.MODEL,
    "timm.models.vision_transformer.VisionTransformer": Role.MODEL,
    "timm.layers.trunc_normal_": None,
    "timm.scheduler.CosineLRScheduler": Role.SCHEDULER,
    "timm.scheduler.cosine_lr.CosineLRScheduler": Role.SCHEDULER,
    "timm.data.create_loader": Role.FEED,
    "timm.loss.SoftTargetCrossEntropy": Role.CRITERION,
    "timm.utils.NativeScaler": Role.SCALER,
    "timm.utils.ModelEmaV2": Role.AVERAGE,
    "segmentation_models_pytorch.Unet": Role.MODEL,
    "segmentation_models_pytorch.losses.DiceLoss": Role.CRITERION,
    "segmentation_models_pytorch.utils.train.TrainEpoch": None,
    "efficientnet_pytorch.EfficientNet.from_pretrained": Role.MODEL,
    "torchmetrics.Accuracy": Role.METRIC,
    "torchmetrics.classification.MulticlassAccuracy": Role.METRIC,
    "torchmetrics.functional.accuracy": None,
    "torch.cuda.amp.GradScaler": Role.SCALER,
    "torch.amp.GradScaler": Role.SCALER,
    "torch.cuda.amp.autocast": Role.AUTOCAST,
    "torch.autocast": Role.AUTOCAST,
    "torch_geometric.loader.DataLoader": Role.LOADER,
    "torch_geometric.loader.NeighborLoader": Role.FEED,
    "torchtext.legacy.data.BucketIterator": Role.FEED,
    "bitsandbytes.optim.Adam8bit": Role.OPTIMIZER,
    "torch_optimizer.RAdam": Role.OPTIMIZER,
    "torch_optimizer.get": None,
    "diffusers.UNet2DModel": Role.MODEL,
    "diffusers.DDPMScheduler": None,
    "diffusers.optimization.get_scheduler": Role.SCHEDULER,
    "wandb.init": Role.WRITER,
    "tensorboardX.SummaryWriter": Role.WRITER,
    "numpy.zeros": None,
}


@pytest.mark.parametrize("name", ROLES)
def test_role(name):
    row = TABLES.row(name)
    assert (row.role if isinstance(row, Makes) else None) is ROLES[name]


@pytest.mark.parametrize(
    ("pattern", "likes", "dislikes"),
    [
        ("a.*", ["a.b", "a.b.c", "a.B", "a.<any>", "a._b.B"], ["a", "b.a", "a.B.c", "ab"]),
        ("a.b_*", ["a.b_", "a.b_c", "a.x.b_c"], ["a.b", "a.B.b_c"]),
        ("a.*b*", ["a.b", "a.xbx"], ["a.x"]),
        ("a.x*x", ["a.xx", "a.xyx"], ["a.x"]),
        ("a.*b*b*", ["a.bb", "a.xbxbx"], ["a.b"]),
        ("a.[A-Z]*", ["a.B", "a.b.Bc"], ["a.b", "a.<any>", "a.B.b"]),
        ("a.*.make", ["a.b.make", "a.b.C.make"], ["a.make", "a.C.d.make"]),
    ],
)
def test_what_a_pattern_stands_for(pattern, likes, dislikes):
    known = Tables([Other(pattern)])
    assert [name for name in (*likes, *dislikes) if known.row(name)] == likes


def test_a_class_takes_the_role_of_what_it_derives_from():
    assert TABLES.role_of_base("torch.nn.DataParallel") is Role.MODEL
    assert TABLES.role_of_base("torch.utils.data.IterableDataset") is Role.DATASET
    assert TABLES.role_of_base("torch.autograd.Function") is None


def test_bars_that_are_given_disable_are_bars():
    assert all(TABLES.row(name) is not None for name in progress.BARS | progress.RANGE_BARS)


def test_the_more_a_pattern_says_before_its_star_the_more_it_weighs():
    tables = Tables((Makes("a.*", Role.MODEL), Makes("a.*Config", Role.DATASET), Other("a.b.*"), Computes("a.b.c")))
    assert tables.row("a.Net").role is Role.MODEL
    assert tables.row("a.NetConfig").role is Role.DATASET
    assert isinstance(tables.row("a.b.Net"), Other)
    assert isinstance(tables.row("a.b.c"), Computes)
    assert tables.row("a.b") is tables.row("a.Net")
    assert tables.row("a.Net.method") is None
    assert tables.row("ab.Net") is None


# ------------------------------------------------------------------------------ every shape, through the whole analysis

PROGRAMS = {
    "makes, over an argument": """
        import torch, timm
        from timm.optim import create_optimizer_v2
        net = timm.create_model("resnet18")  #: model
        opt = create_optimizer_v2(net, opt="sgd")  #: optimizer
        ema = timm.utils.ModelEmaV2(net)  #: averaged model
    """,
    "some optimizer, some model": """
        import torch
        from torchvision import models
        net = models.__dict__[arch]()  #: model
        opt = getattr(torch.optim, name)(net.parameters())  #: optimizer
        other = vars(torch.optim)[name](net.parameters())  #: optimizer
    """,
    "what a text names": """
        import torch
        from torchvision import models
        net = eval("models." + arch)()  #: model
        opt = eval(f"torch.optim.{name}")(net.parameters())  #: optimizer
        same = eval("net")  #: model
    """,
    "gives arguments back": """
        import torch
        from apex import amp
        net = torch.nn.Linear(1, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        net, opt = amp.initialize(net, opt, opt_level="O1")
        a = net  #: model
        b = opt  #: optimizer
        both = amp.initialize(models=net, optimizers=opt)
        c = both[1]  #: optimizer
        d = amp.initialize(net)  #: model
    """,
    "gives arguments and things unknown": """
        import torch, deepspeed
        net = torch.nn.Linear(1, 1)
        engine, opt, _, sched = deepspeed.initialize(args=args, model=net)
        a = engine  #: model
        b = opt  #:
        c = sched  #:
    """,
    "gives new objects": """
        import torch
        from timm.scheduler import create_scheduler
        opt = torch.optim.SGD(params, lr=0.1)
        sched, epochs = create_scheduler(args, opt)
        a = sched  #: scheduler
        b = epochs  #: number
    """,
    "gives several of one role": """
        from torchtext.data import BucketIterator
        train, test = BucketIterator.splits((a, b), batch_size=2)
        for batch in train:
            x = batch  #: batch
        a = test  #: data source
    """,
    "a loader that is no DataLoader yields batches": """
        from timm.data import create_loader
        loader = create_loader(data, input_size=3, batch_size=2)  #: data source
        for x, y in loader:
            a = x  #: batch
    """,
    "passes an argument, by place or by name": """
        import torch
        from torch.nn.parallel import DistributedDataParallel as DDP
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from peft import get_peft_model
        net = torch.nn.Linear(1, 1)
        a = DDP(module=net, device_ids=[0])  #: model
        b = FSDP(net)  #: model
        c = get_peft_model(net, config)  #: model
        d = torch.nn.utils.spectral_norm(net)  #: model
        e = DDP()  #: unknown object
    """,
    "a scaled loss is the loss": """
        import torch
        from apex import amp
        for x, y in torch.utils.data.DataLoader(data):
            loss = torch.nn.functional.mse_loss(x, y)
            with amp.scale_loss(loss, opt) as scaled:
                a = scaled  #: statistic
    """,
    "the place of a process": """
        import os
        import torch.distributed as dist
        rank = dist.get_rank()  #: rank
        size = int(os.environ["WORLD_SIZE"])  #: world size
        local = int(os.environ.get("LOCAL_RANK", 0))  #: local rank
        other = os.getenv("SLURM_PROCID")  #: rank
        is_main = rank == 0  #: rank
        home = os.environ["HOME"]  #:
        number = int(os.environ.get("SEED"))  #: unknown object
    """,
    "what torch has beside tensors is none": """
        import torch
        a = torch.Generator()  #: unknown object
        b = torch.cuda.synchronize()  #: unknown object
        c = torch.distributed.is_initialized()  #: unknown object
        d = torch.exp(1)  #: tensor
    """,
    "computes: rows stay rows": """
        import torch
        for x, y in torch.utils.data.DataLoader(data):
            a = torch.exp(x)  #: samples
            b = torch.sum(x)  #: statistic
            c = library.of_somebody(x)  #: statistic
    """,
    "metrics, scalers, contexts, writers": """
        import torch, torchmetrics, wandb
        a = torchmetrics.Accuracy("binary")  #: metric
        b = torch.amp.GradScaler("cuda")  #: grad scaler
        c = torch.cuda.amp.autocast()  #: autocast context
        d = wandb.init(project="p")  #: writer
    """,
    "the fields of a model's output": """
        import torch
        from transformers import AutoModelForSequenceClassification
        net = AutoModelForSequenceClassification.from_pretrained("b")  #: model
        for batch in torch.utils.data.DataLoader(data):
            out = net(**batch)
            a = out.logits  #: samples
            b = out.loss  #: statistic
    """,
}


def check(program, known=TABLES):
    """Compare what the analysis says of each marked line's value with its mark."""
    source = textwrap.dedent(program).lstrip()
    facts = analyse(Project([SourceFile("a.py", source.encode())]), known)
    lines = source.splitlines()
    for node in ast.walk(facts.modules[0].tree):
        if isinstance(node, ast.Assign) and (mark := re.search(r"#:(.*)$", lines[node.lineno - 1])):
            found = {value.role.value for value in facts.values(node.value)} - {"unknown object"}
            found = found or {value.role.value for value in facts.values(node.value)}
            wanted = {word.strip() for word in mark[1].split(",") if word.strip()}
            assert found == wanted, lines[node.lineno - 1]
    return facts


@pytest.mark.parametrize("name", PROGRAMS)
def test_shape(name):
    check(PROGRAMS[name])


def test_what_a_scheduler_of_a_tuple_drives_is_known():
    facts = check(PROGRAMS["gives new objects"])
    made = {v.role: v.origin for values in facts._state.values.values() for v in values if v.origin is not None}
    assert {value.role for value in facts.over(made[Role.SCHEDULER])} == {Role.OPTIMIZER}


def test_a_local_rank_is_the_index_of_a_gpu():
    program = b"""\
import os
import torch

local = int(os.environ["LOCAL_RANK"])
net = torch.nn.Linear(1, 1).to(local)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(data)
for x in loader:
    net(x.cuda(local)).sum().backward()
    opt.step()
"""
    (change,) = run_text(program, "", Options()).changes
    assert b"to(local)" not in change.new
    assert b"cuda(local)" not in change.new


def test_every_role_of_a_place_is_read_from_the_environment():
    assert set(distributed.ENVIRONMENT.values()) == PLACE


# ----------------------------------------------------------------------------------------------------- a user's tables

CONFIGURATION = """
[tool.migrate.known.makes]
"mylib.models.build_*" = "model"
"mylib.data.fast_loader" = { role = "dataloader", over = 0 }
"mylib.schedule" = { role = "scheduler", over = "optimizer" }
"mylib.setup" = ["model", "optimizer"]
"torchvision.models.resnet18" = "unknown object"

[tool.migrate.known.passes]
"mylib.wrap" = 0
"mylib.guard" = { position = 1, keyword = "model" }
"mylib.prepare" = [0, "loader"]
"""


@pytest.fixture
def configured(tmp_path, monkeypatch):
    def write(text=CONFIGURATION):
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        return tmp_path

    monkeypatch.chdir(tmp_path)
    return write


def tables_of(folder):
    from migrate.source import pyproject

    found = pyproject.settings([folder])
    return user.tables(found.table, found.path)


def test_rows_of_a_user_work_like_ours(configured):
    check(
        """
        import mylib, torch, torchvision
        from mylib.models import build_small
        net = build_small(3)  #: model
        loader = mylib.data.fast_loader(data)  #: dataloader
        a = mylib.wrap(net)  #: model
        b = mylib.guard(1, net)  #: model
        c = mylib.guard(1, model=net)  #: model
        d, e = mylib.prepare(net, loader=loader)
        f = d  #: model
        g = e  #: dataloader
        h, i = mylib.setup()
        j = h  #: model
        k = i  #: optimizer
        l = mylib.schedule(optimizer=i)  #: scheduler
        m = torchvision.models.resnet18()  #: unknown object
        n = torchvision.models.resnet34()  #: model
        """,
        tables_of(configured()),
    )


def test_rows_of_a_user_belong_to_one_run(configured):
    tables_of(configured())
    assert TABLES.row("mylib.wrap") is None
    assert TABLES.row("torchvision.models.resnet18").role is Role.MODEL


PROGRAM = b"""\
import torch
import mylib

device = torch.device("cuda")
net = mylib.models.build_small().to(device)
loader = mylib.data.fast_loader(data)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    loss = net(x.to(device)).sum()
    loss.backward()
    opt.step()
"""


def test_the_nearest_file_above_what_is_named_counts(configured, tmp_path):
    folder = configured() / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "train.py").write_bytes(PROGRAM)
    assert run(["a/b/train.py"], Options()).changes
    assert run(["a"], Options()).changes
    assert run_text(PROGRAM, "", Options()).changes
    (folder.parent / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert not run(["a/b/train.py"], Options()).changes


def test_without_a_file_or_a_table_our_rows_count(configured):
    assert not run_text(PROGRAM, "", Options()).changes
    configured("[tool.other]\n")
    assert not run_text(PROGRAM, "", Options()).changes


WRONG = {
    "role": ('makes]\n"a.b" = "modle"', ["\"a.b\" = 'modle'", "'modle' is not a role", "model, loss function,"]),
    "role in a list": ('makes]\n"a.b" = ["model", "bach"]', ["'bach' is not a role", "dataloader"]),
    "no role": ('makes]\n"a.b" = { over = 0 }', ["it has no role"]),
    "key": ('makes]\n"a.b" = { role = "model", ovr = 0 }', ["'ovr' is not a key", "Allowed: role, over."]),
    "argument": ('makes]\n"a.b" = { role = "scheduler", over = -1 }', ["-1 is not an argument", "counted from 0"]),
    "passed": ('passes]\n"a.b" = true', ["True is not an argument"]),
    "passed in a list": ('passes]\n"a.b" = [0, 1.5]', ["1.5 is not an argument"]),
    "shape": ('gives]\n"a.b" = 0', ["[tool.migrate.known] holds 'gives'", "Allowed: makes, passes."]),
    "name": ('makes]\n"*Net" = "model"', ["'*Net' is no name", "begins with its package"]),
    "no table": ("makes]\n[tool.migrate.known]\npasses = 3", ["tool.migrate.known.passes is 3, no table"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_row_is_named_with_what_is_allowed(configured, case):
    text, says = WRONG[case]
    configured(f"[tool.migrate.known.{text}\n")
    with pytest.raises(UsageError) as raised:
        run_text(PROGRAM, "", Options())
    for words in ("pyproject.toml: ", *says):
        assert words in str(raised.value)


def test_a_file_that_is_no_toml_or_has_other_sections_is_an_error(configured):
    for text, says in (("[tool.migrate", "cannot be read"), ("[tool.migrate.knwon]\n", "holds 'knwon'")):
        configured(text)
        with pytest.raises(UsageError, match=says):
            run_text(PROGRAM, "", Options())


def test_the_command_line_exits_with_2(configured):
    folder = configured('[tool.migrate.known.makes]\n"a.b" = "modle"\n')
    (folder / "train.py").write_bytes(PROGRAM)
    result = CliRunner().invoke(cli.app, ["train.py"], prog_name="migrate")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("migrate: pyproject.toml: [tool.migrate.known.makes] \"a.b\" = 'modle': ")


PAGE = Path(__file__).parents[3] / "docs" / "tables.md"


def test_the_page_shows_rows_that_are_understood(configured):
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    known = tables_of(configured(example[1]))
    assert known.row("mylib.models.vision.build_small").role is Role.MODEL
    assert known.row("mylib.models.Builder.build_small") is None
    assert known.row("mylib.prepare").elements == ((0, ""), user._argument("loader", None))


def test_the_page_says_what_every_role_promises():
    cells = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(.*?)`", cell)} == user.ROLES.keys()
