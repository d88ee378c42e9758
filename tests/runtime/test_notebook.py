"""`notebook_launcher` and `debug_launcher`: in a real kernel, and what they refuse."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import nbformat
import pytest
import torch
from nbclient import NotebookClient

from runtime import Accelerator, debug_launcher, notebook_launcher
from runtime.errors import AcceleratorError, ProcessFailed

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


class Kernel:
    """A real Jupyter kernel, cell after cell."""

    def __init__(self, client):
        self._client = client
        self.pid = client.km.provisioner.pid

    def __call__(self, source):
        """What the cell shows: its streams joined, its last value or its error."""
        cell = nbformat.v4.new_code_cell(source)
        self._client.nb.cells.append(cell)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._client, "allow_errors", True)
            self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        texts = {"stdout": "", "stderr": "", "value": None, "error": None}
        for output in cell.outputs:
            if output.output_type == "stream":
                texts[output.name] += output.text
            elif output.output_type == "error":
                texts["error"] = re.sub(r"\x1b\[[\d;]*m", "", "\n".join([*output.traceback, output.evalue]))
            else:
                texts["value"] = output.data["text/plain"]
        return texts


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("notebook"))
    # Under this variable of pytest's a kernel does not show what its child processes print, as it does otherwise.
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environ |= {"PYTHONPATH": str(ROOT), "IPYTHONDIR": folder, "JUPYTER_RUNTIME_DIR": folder}
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=90, resources={"metadata": {"path": folder}})
    with client.setup_kernel(env=environ):
        run = Kernel(client)
        assert run(CELLS)["error"] is None
        yield run


CELLS = """
import torch
from runtime import Accelerator, notebook_launcher

torch.randn(300, 300) @ torch.randn(300, 300)      # the kernel has computed something already
scale = 3.0

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x * scale)

def train(steps, lr=0.1):
    import io
    accelerator = Accelerator(cpu=True, split_batches=True)
    torch.manual_seed(0)
    model = Net()
    data = torch.utils.data.TensorDataset(torch.linspace(-1, 1, 64).reshape(16, 4), torch.ones(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, (x, y) in zip(range(steps), loader):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    plain = accelerator.unwrap_model(model)
    torch.save(plain, io.BytesIO())                 # pickles the class of the cell by its name
    print(f"process {accelerator.process_index} of {accelerator.num_processes}")
    return plain
"""


def test_a_cell_trains_on_two_processes_as_on_one(kernel):
    one = kernel("alone = notebook_launcher(train, (4,), num_processes=1)")
    assert (one["stdout"], one["error"]) == ("process 0 of 1\n", None)
    two = kernel("model = notebook_launcher(train, (4,), num_processes=2)")
    assert two["error"] is None
    assert sorted(two["stdout"].splitlines()) == [
        "Starting 2 processes on the CPU (no GPU found).",
        "process 0 of 2",
        "process 1 of 2",
    ]
    assert kernel("type(model) is Net")["value"] == "True"
    difference = kernel(
        "max(float((a - b).abs().max()) for a, b in zip(model.parameters(), alone.parameters())), "
        "all(torch.isfinite(p).all() for p in model.parameters())"
    )
    assert float(difference["value"].strip("()").split(",")[0]) < 1e-6
    assert difference["value"].endswith("True)")


def test_a_failing_process_is_shown_once_with_the_line_of_the_cell(kernel):
    shown = kernel("def broken():\n    raise ValueError('bo' + 'om')\nnotebook_launcher(broken, num_processes=2)")
    assert shown["stderr"] == ""
    assert shown["error"].count("ValueError: boom") == 2, "in the traceback of the cell, and as the value of the error"
    (said,) = re.findall(r"Traceback \(most recent call last\):\n  File .*, line 2, in broken\n.*", shown["error"])[:1]
    assert "raise ValueError('bo' + 'om')" in said, "the text of the cell"


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_interrupted_cell_ends_its_processes(kernel, tmp_path):
    marks = tmp_path / "pids"
    marks.mkdir()

    def interrupt():
        deadline = time.monotonic() + 60
        while len(list(marks.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(kernel.pid, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    shown = kernel(
        f"def wait():\n    import os, pathlib, time\n    pathlib.Path({str(marks)!r}, str(os.getpid())).touch()\n"
        "    time.sleep(120)\nnotebook_launcher(wait, num_processes=2)"
    )
    thread.join()
    assert "KeyboardInterrupt" in shown["error"]
    assert "runtime launch: stopped by SIGINT" in shown["stderr"]
    pids = [int(path.name) for path in marks.iterdir()]
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)
    after = kernel("import signal; signal.getsignal(signal.SIGINT) is signal.default_int_handler")
    assert after["value"] == "True", "the kernel can be interrupted again, and goes on"


def what_travels(number, *, factor=1):
    accelerator = Accelerator()
    return {
        "sum": accelerator.reduce(torch.ones(1) * number * factor).item(),
        "device": accelerator.device.type,
        "here": __name__,
    }


def test_debug_launcher_takes_functions_that_no_process_could_import():
    assert __name__ not in ("__main__", "test_notebook"), "pytest loads this file by its path"
    found = debug_launcher(what_travels, (3,))
    assert found == {"sum": 6.0, "device": "cpu", "here": __name__}


def test_a_closure_travels_and_what_cannot_come_back_is_told():
    offset = torch.arange(3)

    def function():
        assert int(offset.sum()) == 3
        return (number for number in offset)

    with pytest.warns(UserWarning, match=r"cannot be sent, and None is given back: generator"):
        assert debug_launcher(function, num_processes=1) is None


def test_a_restart_after_a_failure(capfd):
    def function():
        if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            raise RuntimeError("first attempt")
        return os.environ["TORCHELASTIC_RESTART_COUNT"]

    assert notebook_launcher(function, num_processes=1, max_restarts=1) == "1"
    assert capfd.readouterr().err.count("RuntimeError: first attempt") == 1


def test_a_process_that_dies_is_named():
    def function():
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ProcessFailed, match=r"process 0 of 1 was killed by SIGKILL") as failed:
        debug_launcher(function, num_processes=1)
    assert failed.value.status == 137


def test_one_process_runs_here_with_the_precision_asked_for():
    def function(name):
        return os.getpid(), os.environ.get(name)

    name = "ACCELERATE_MIXED_PRECISION"
    assert notebook_launcher(function, (name,)) == (os.getpid(), None)
    assert notebook_launcher(function, (name,), mixed_precision="bf16") == (os.getpid(), "bf16")
    with pytest.raises(KeyError, match="as it is"):
        notebook_launcher(lambda: {}["as it is"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_processes": 0}, "num_processes=0: at least 1"),
        ({"num_processes": 2, "mixed_precision": "fp12"}, "mixed_precision='fp12' is not known. Known: no, bf16, fp16"),
        ({"num_processes": 2, "use_port": "a"}, "use_port='a' is not a number"),
        ({"num_processes": "two"}, "num_processes='two' is not a number"),
        ({"num_processes": 2.5}, "num_processes=2.5 is not a whole number"),
        ({"num_processes": 2, "args": 3}, r"args=3 are not the arguments.*args=\(3,\)"),
        ({"num_processes": 2, "use_port": 70000}, "use_port=70000"),
        ({"num_processes": 2, "num_nodes": 2, "node_rank": 2}, "node_rank=2"),
        ({"num_processes": 2, "num_nodes": 0}, "num_nodes=0: at least 1 is needed"),
        ({"num_processes": 2, "max_restarts": -1}, "max_restarts=-1"),
        ({"num_processes": 2, "rdzv_endpoint": "a:1"}, r"rdzv_endpoint=\.\.\.\) is not supported .* master_addr"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_values_that_cannot_be_used_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message) as raised:
        notebook_launcher(int, **arguments)
    assert isinstance(raised.value, AcceleratorError)
    assert "--" not in str(raised.value), "in the words of the function, not of the command line"


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_a_used_gpu_is_refused_before_anything_starts(monkeypatch, kind):
    monkeypatch.setattr(getattr(torch, kind), "is_initialized", lambda: True)
    with pytest.raises(ValueError, match=rf"{kind.upper()} is already in use in this notebook.*Restart the kernel"):
        notebook_launcher(what_travels, (1,), num_processes=2)


def test_an_accelerator_of_the_notebook_is_refused_by_its_name():
    accelerator = Accelerator(cpu=True)

    def helper():
        return accelerator.num_processes

    def function():
        return helper()

    with pytest.raises(ValueError, match=r"function\(\) uses 'accelerator' \(Accelerator\).*inside of the function"):
        debug_launcher(function)


def test_what_cannot_be_pickled_is_named():
    with pytest.raises(ValueError, match=r"uses argument 2 \(lock\), which cannot be sent"):
        debug_launcher(what_travels, (1, threading.Lock()))


def test_without_cloudpickle_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    with pytest.raises(ValueError, match="pip install cloudpickle"):
        debug_launcher(what_travels, (1,))


def test_random_numbers_go_on_where_the_notebook_stood(kernel):
    assert kernel("""
import random
import numpy as np

def draw():
    return random.random(), np.random.rand(), torch.rand(1).item(), torch.initial_seed()

def stand():
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    torch.rand(5)

stand()
here = draw()
stand()
print(notebook_launcher(draw, num_processes=2) == here)
""")["stdout"].endswith("True\n")


def test_the_notebook_draws_from_where_process_0_stopped(kernel):
    assert kernel("""
import random
import numpy as np

def draw():
    return random.random(), np.random.rand(), torch.rand(1).item(), torch.initial_seed()

def seeded():
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    return [draw() for _ in range(3)]

one, two, three = seeded()
random.seed(1), np.random.seed(2), torch.manual_seed(3)
print([notebook_launcher(draw, num_processes=2), notebook_launcher(draw, num_processes=2), draw()] == [one, two, three])
""")["stdout"].endswith("True\n")


def test_what_cannot_be_sent_is_missing_alone():
    def function():
        return 1, threading.Lock(), [2]

    with pytest.warns(UserWarning, match=r"None is given back: element 2, lock: cannot pickle"):
        assert debug_launcher(function, num_processes=1) == (1, None, [2])


def test_a_prepared_model_comes_back_as_the_model_itself():
    def function():
        accelerator = Accelerator(cpu=True)
        model = accelerator.prepare(torch.nn.Linear(2, 1, bias=False))
        torch.nn.init.constant_(accelerator.unwrap_model(model).weight, 3.0)
        return model, {"best": model}

    model, kept = debug_launcher(function)
    assert type(model) is torch.nn.Linear
    assert model(torch.ones(2)).item() == 6.0
    assert kept["best"] is model


def test_what_cells_have_set_of_the_process_goes_on(kernel):
    told = kernel("""
import logging
import sys
import warnings
import numpy as np

def say():
    logging.info("rows %d", 3)
    logging.getLogger("quiet").info("nothing")
    warnings.warn("not shown")
    half = torch.zeros(1).dtype, torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()
    return half, torch.backends.cudnn.deterministic, str(torch.tensor(1 / 3)), str(np.float64(1) / np.zeros(1))

logging.basicConfig(level=logging.INFO, format="told %(message)s", stream=sys.stdout, force=True)
logging.getLogger("quiet").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64), torch.set_grad_enabled(False), torch.use_deterministic_algorithms(True)
torch.set_printoptions(precision=2)
torch.backends.cudnn.deterministic = True
np.seterr(all="ignore")
there = notebook_launcher(say, num_processes=2)
print(there == ((torch.float64, False, True), True, "tensor(0.33)", "[inf]"), there)
""")
    assert told["stdout"].count("told rows 3\n") == 2
    assert "told nothing" not in told["stdout"]
    assert "True ((torch.float64" in told["stdout"]
    assert "not shown" not in told["stdout"] + told["stderr"]
