"""The shape of both packages, checked: layers, cycles, sizes, names, and what may be imported where."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

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
        {"edits", "analysis", "unbound"},
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
        {"checkpoints", "strategies", "optimizer", "metrics", "data", "accumulation", "unheld", "save"},
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
        {"collectives", "split", "telling"},
        {"messages"},
        {"watch"},
        {"world"},
        {"devices"},
        {"config", "sharding", "compilation", "hardware", "kinds"},
        {"plugins"},
        {"handlers", "project", "tree"},
        {"errors", "open_files"},
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
