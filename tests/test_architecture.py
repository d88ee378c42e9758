"""The shape of both packages, checked: layers, cycles, sizes, names, and what may be imported when."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import typer

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("migrate", "runtime")
MAX_MODULE_LINES = 400
MAX_BODY_LINES = 60  # of a function, without its signature and docstring
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "handler"}

# From the top to the bottom: a module imports from its own line or from a lower one, never from a higher one.
LAYERS = {
    "migrate": (
        {"__main__"},
        {"cli", "codemod", "lsp"},
        {"verify"},
        {"pipeline"},
        {"partwise"},
        {"cache"},
        {"engine", "configuration", "ignored"},
        {"alone", "views", "launching"},
        {"rules", "selfcheck", "workers"},
        {"programs", "report"},
        {"edits", "analysis"},
        {"source"},
        {"options", "codes"},
        {"errors", "__init__"},
    ),
    "runtime": (
        {"__init__", "__main__"},  # __init__ names everything lazily
        {"cli"},
        {"launch"},
        {"accelerator"},
        {"local_sgd"},
        {"training", "loaders", "exchange", "checkpointing", "reporting"},  # what it is made of
        {"state", "operations", "loading", "variables"},  # what scripts ask for beside it
        {"files"},
        {"checkpoints", "strategies", "optimizer", "metrics", "data", "accumulation", "save"},
        {
            "precision",
            "processes",
            "seed",
            "termination",
            "tracking",
            "profiling",
            "logging",
            "progress",
            "memory",
            "estimate",
        },
        {"collectives", "split"},
        {"messages"},
        {"watch"},
        {"world"},
        {"devices"},
        {"config", "sharding", "compilation", "hardware", "kinds"},
        {"plugins"},
        {"handlers", "project", "tree", "log"},
        {"errors"},
    ),
}
#: Inside of `migrate/programs`, from the top to the bottom. What lies beside them (the program, its loops, what is
#: decided of it as a whole) may be asked by all, and asks all.
PROGRAMS = (
    {"output"},
    {"prepare"},
    {"device"},
    {"evaluation"},
    {"home"},
    {"shares"},
    {"processes"},
    {"chance"},
    {"training"},
    {"amp"},
    {"schedule"},
    {"values"},
    {"reach"},
)
WRITERS_OF_THE_ENVIRONMENT = (
    "runtime/launch/env.py",
    "runtime/launch/fork_server.py",  # gives a forked worker what a new process is given when it starts
    "runtime/variables.py",  # because a script asks for it
)
LIBCST_ONLY_IN = ("migrate/edits/", "migrate/codemod.py")
RECORDER = "migrate.verify.recorder"
TORCH_ONLY_IN = "migrate/verify/recorder/"  # what runs in the child processes of a verification

LAUNCH_OPTIONS = {  # beside those about models, --fsdp_* and --dynamo_*
    "--num_processes",
    "-n",
    "--processes_per_machine",
    "--nproc_per_node",
    "--cpu",
    "--gpu_ids",
    "--mixed_precision",
    "--gradient_accumulation_steps",
    "--num_cpu_threads_per_process",
    "--enable_cpu_affinity",
    "--num_machines",
    "--nnodes",
    "--machine_rank",
    "--node_rank",
    "--main_process_ip",
    "--master_addr",
    "--main_process_port",
    "--master_port",
    "--rdzv_backend",
    "--rdzv_conf",
    "--max_restarts",
    "--monitor_interval",
    "-m",
    "--module",
    "--no_python",
    "--log_dir",
    "--console",
    "--debug",
    "--use_fsdp",
    "--dp_replicate_size",
    "--dp_shard_size",
    "--config_file",
    "--explain",
    "--dry_run",
    "--multi_gpu",
    "--tpu",
    "--same_network",
}
MIGRATE_OPTIONS = {
    "--check",
    "--color",
    "--diff",
    "--explain",
    "--explain-role",
    "--ignore",
    "--jobs",
    "-j",
    "--no-cache",
    "--cache-dir",
    "--interactive",
    "-i",
    "--undo-patch",
    "--notebook-launcher",
    "--exclude",
    "--for",
    "--force-exclude",
    "--no-gitignore",
    "--since",
    "--baseline",
    "--update-baseline",
    "--config",
    "--isolated",
    "--output-format",
    "--quiet",
    "-q",
    "--report",
    "--rules",
    "--review",
    "--annotate",
    "--select",
    "--stdin-filename",
    "--verify",
    "--steps",
    "--processes",
    "--time-limit",
    "--verify-json",
    "--target",
    "--install-completion",
    "--show-completion",
    "--traceback",
    "--verbose",
    "-v",
    "--version",
    "--write",
    "-w",
}


def sources():
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def relative(path):
    return path.relative_to(ROOT).as_posix()


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Imports(ast.NodeVisitor):
    """The modules that a file imports when it runs, at any level; what is only there for types does not count."""

    def __init__(self):
        self.found = set()

    def visit_If(self, node):
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                self.visit(other)
        else:
            self.generic_visit(node)

    def visit_Import(self, node):
        self.found.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node):
        assert node.level == 0, "imports are absolute"
        self.found.update(f"{node.module}.{alias.name}" for alias in node.names)


def imports(path):
    visitor = Imports()
    visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
    return visitor.found


def graph():
    """Module -> the modules of ours that it imports."""
    known = {module_name(path) for path in sources()}
    edges = {}
    for path in sources():
        names = {name if name in known else name.rpartition(".")[0] for name in imports(path)}
        edges[module_name(path)] = (names & known) - {module_name(path)}
    return edges


def unit(name):
    package, _, rest = name.partition(".")
    return package, rest.partition(".")[0] or "__init__"


def test_sources_are_found():
    assert len(sources()) > 20


def test_every_module_has_a_layer():
    missing = {unit(name) for name in graph() if not any(unit(name)[1] in layer for layer in LAYERS[unit(name)[0]])}
    assert not missing, "add it to LAYERS, at its place"


def test_imports_go_down():
    wrong = []
    for name, imported in graph().items():
        for other in imported:
            (package, above), (other_package, below) = unit(name), unit(other)
            if package != other_package:
                wrong.append(f"{name} imports {other}: the packages know nothing of each other")
                continue
            place = {member: index for index, layer in enumerate(LAYERS[package]) for member in layer}
            unlisted = {above, below} - place.keys()  # the test above names it
            if below != "__init__" and not unlisted and place[above] > place[below]:
                wrong.append(f"{name} imports {other}, which is above it")
    assert not wrong


def topic(name):
    """The package below `migrate.programs` that a module lies in."""
    parts = name.split(".")
    return parts[2] if parts[:2] == ["migrate", "programs"] and len(parts) > 3 else None


def test_topics_of_programs_ask_those_below():
    place = {member: index for index, layer in enumerate(PROGRAMS) for member in layer}
    packages = {path.parent.name for path in sources() if path.parent.parent.name == "programs"}
    assert packages == place.keys(), "add it to PROGRAMS, at its place"
    edges = {(name, other) for name, others in graph().items() for other in others if topic(name) and topic(other)}
    wrong = [f"{name} imports {other}" for name, other in edges if place[topic(name)] > place[topic(other)]]
    assert not wrong


def test_no_import_cycles():
    # A package's __init__ may export its modules: the edge from the module back to its own package is no dependency.
    edges = {name: {other for other in others if not name.startswith(f"{other}.")} for name, others in graph().items()}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_sizes_and_names(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_MODULE_LINES, "split it along its nouns"
    assert path.stem not in VAGUE_NAMES, "name it after what it holds"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = node.end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= MAX_BODY_LINES, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_foreign_imports_stay_in_their_place(path):
    tops = {name.partition(".")[0] for name in imports(path)}
    place = relative(path)
    assert not tops & {"click", "accelerate"}, "typer brings its own click; accelerate is no dependency"
    assert "libcst" not in tops or place.startswith(LIBCST_ONLY_IN)
    assert "typer" not in tops or place.split("/")[1].startswith("cli")
    if place.startswith(TORCH_ONLY_IN):
        assert not tops & {"runtime", "libcst"}
    elif place.startswith("migrate/"):
        assert not tops & {"torch", "numpy", "runtime"}
        assert not any(name.startswith(RECORDER) for name in imports(path)), "it is started, never imported"
    else:
        assert not tops & {"libcst", "migrate"}


#: What differs between kinds of device is a question that every class of runtime/devices answers, or, where nothing may
#: load torch yet, a record of runtime/kinds.py.
KINDS = {"cuda", "hip", "mps", "xpu", "tpu", "xla", "nccl", "xccl", "tpu_dist", "gloo"}
NAMES_KINDS = ("runtime/devices/", "runtime/kinds.py")
FLAGS_OF_ACCELERATE = {"runtime/launch/options.py": {"'tpu'"}}  # `accelerate launch --tpu`, which asks for nothing here


def asks_for_a_kind(node):
    """What a node asks that only a class about a kind of device should: its name, its module, its backend."""
    if isinstance(node, ast.Attribute):
        names_module = isinstance(node.value, ast.Name) and node.value.id == "torch" and node.attr in KINDS - {"hip"}
        return names_module or node.attr in {"is_cuda", "is_mps", "is_xpu", "is_xla", "is_cpu"}
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(KINDS & set(node.value.replace(":", ",").split(",")))
    if isinstance(node, ast.Compare):
        sides = [side for side in (node.left, *node.comparators) if isinstance(side, ast.Attribute)]
        is_text = any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
        return any(side.attr in ("type", "device_type") or (side.attr == "kind" and is_text) for side in sides)
    return False


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_only_the_devices_ask_for_a_kind_of_device(path):
    place = relative(path)
    if not place.startswith("runtime/") or place.startswith(NAMES_KINDS):
        return
    found = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if asks_for_a_kind(n)]
    told = [node for node in found if ast.unparse(node) not in FLAGS_OF_ACCELERATE.get(place, set())]
    assert not [f"line {node.lineno}: {ast.unparse(node)}" for node in told], "ask runtime.devices or runtime.kinds"


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("torch.cuda.synchronize()", True),
        ("tensor.is_cuda", True),
        ("device.type == 'privateuseone'", True),
        ("share.kind == 'cpu'", True),
        ("kind is Kind.TRAINING", False),
        ("'nccl' in backend", True),
        ("dist.init_process_group('cpu:gloo,cuda:nccl')", True),
        ("torch.autocast(device.type, dtype)", False),
        ("type(kind) is str", False),
        ("'without cuda'", False),
    ],
)
def test_such_questions_are_seen(text, asks):
    assert any(asks_for_a_kind(node) for node in ast.walk(ast.parse(text))) == asks


@pytest.mark.parametrize("path", sources(), ids=relative)
def test_only_the_launcher_writes_the_environment(path):
    if relative(path) in WRITERS_OF_THE_ENVIRONMENT:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            assert ast.unparse(node.value) != "os.environ", f"line {node.lineno}"
        if isinstance(node, ast.Call):
            writers = {f"os.environ.{name}" for name in ("update", "setdefault", "pop", "clear")} | {"os.putenv"}
            assert ast.unparse(node.func) not in writers, f"line {node.lineno}"


def loaded_after(code):
    """The top-level modules that are loaded after `code` ran in a fresh interpreter, whatever it exits with."""
    wrapped = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", wrapped], cwd=ROOT, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("LOADED"))
    return {name.partition(".")[0] for name in line.split()[1:]}


def run_main(module, *arguments):
    return f"sys.argv = {['x', *arguments]!r}; from {module} import main; main()"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["launch", "--help"],
        ["config", "--help"],
        ["env", "--help"],
        ["test", "--help"],
        ["estimate", "--help"],
        ["launch", "missing.py"],
    ],
)
def test_runtime_commands_start_without_torch(arguments):
    loaded = loaded_after(run_main("runtime.cli", *arguments))
    assert "typer" in loaded
    assert not loaded & {"torch", "numpy", "libcst", "migrate"}
    if "--help" in arguments:  # in 150 ms of CPU: these take as long as all the rest
        assert not loaded & {"pydantic", "yaml", "importlib_metadata", "rich"}


def test_import_runtime_loads_no_torch():
    assert not loaded_after("import runtime") & {"torch", "numpy", "typer"}


def test_migrate_help_loads_neither_torch_nor_libcst():
    loaded = loaded_after(run_main("migrate.cli", "--help"))
    assert "typer" in loaded
    assert not loaded & {"torch", "numpy", "libcst", "runtime"}


def option_names(command):
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}


def test_runtime_options_are_frozen():
    from runtime.cli import app

    command = typer.main.get_command(app)
    assert set(command.commands) == {"config", "launch", "test", "estimate", "env"}
    names = option_names(command.commands["launch"])
    assert {name for name in names if not name.startswith(("--fsdp_", "--dynamo_"))} == LAUNCH_OPTIONS
    assert option_names(command.commands["config"]) == {"--config_file", "--project", "--default", "--update"}
    own = {"--explain", "--dry_run", "-m", "--module", "--no_python"}  # the rest `runtime test` has, too
    assert option_names(command.commands["test"]) == names - own
    assert option_names(command.commands["estimate"]) == set()
    assert option_names(command.commands["env"]) == set()


def test_every_option_of_migrate_has_an_example():
    from migrate.cli import app
    from migrate.cli.examples import EXAMPLES

    shown = {word for each in EXAMPLES for word in each.command.split()}
    names = {parameter.opts[0] for parameter in typer.main.get_command(app).params if parameter.opts[0].startswith("-")}
    assert names - shown == set(), "add it to migrate/cli/examples.py"
    assert shown >= {"migrate"}


def test_migrate_options_are_frozen():
    from migrate.cli import app

    assert option_names(typer.main.get_command(app)) == MIGRATE_OPTIONS
