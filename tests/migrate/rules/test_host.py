import pytest

UNCHANGED = {
    "numbers of numpy": {"imports": "import numpy as np", "epoch": "shown = np.mean([1.0, 2.0])"},
    "already there": {"epoch": "shown = output.detach().cpu().numpy()"},
    "another tensor": {"setup": "rows = torch.randn(3)", "epoch": "shown = rows.numpy()"},
    "a list of rows": {"imports": "import numpy as np", "epoch": "shown = np.array(sorted(output))"},
    "what a library makes of rows": {
        "imports": "import numpy as np\nfrom torchcrf import CRF",
        "setup": "crf = CRF(3)",
        "epoch": "shown = np.array(crf.decode(output))",
    },
    "a number": {"imports": "import numpy as np", "step": "shown = np.array(loss.item())"},
    "each of what was brought there": {
        "imports": "import numpy as np",
        "setup": "def show(rows):\n    for i, row in enumerate(rows):\n        kept[i] = np.abs(row)\nkept = {}",
        "epoch": "show(output)\nshow(output.detach().cpu().numpy())",
    },
    "a list of what was brought there": {
        "start": "found = []",
        "step": "found.append(output.detach().cpu())",
        "epoch": "shown = torch.cat(found).numpy()",
    },
    "torch's own functions": {"epoch": "shown = torch.stack([output])"},
    "parts that were brought there": {
        "start": "parts = []",
        "step": "parts.append(output.detach().cpu())",
        "epoch": "shown = torch.cat(parts).numpy()",
    },
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


COUNTING = """
class Loss(nn.Module):
    def forward(self, output, y):
        return ((output - y) ** 2).sum(), (y != 0).sum().item()

counting = Loss()
"""
NUMBERS = {
    "sums of them": {
        "start": "counts = []",
        "step": "counts.append(counting(output, y)[1])",
        "epoch": "mean = 1.0 / sum(counts)\nshown = np.exp(-mean)",
    },
    "under a name": {"step": "_, count = counting(output, y)\nshown = np.log(count)"},
    "at once": {"step": "shown = np.log(1 + counting(output, y)[1])"},
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_a_loss_of_the_project_counts(convert_text, programs, name):
    before, _ = programs({"imports": "import numpy as np", "setup": COUNTING} | NUMBERS[name])
    _, result = convert_text(before)

    assert "accelerator.prepare(" in result
    assert ".cpu()" not in result


CHANGED = {
    "a batch": ("shown = x.numpy()", "shown = x.cpu().numpy()"),
    "detached": ("shown = output.detach().numpy()", "shown = output.detach().cpu().numpy()"),
    "its data": ("shown = output.data.numpy()", "shown = output.data.cpu().numpy()"),
    "given to numpy": ("shown = np.mean(y)", "shown = np.mean(y.cpu())"),
    "an element": ("shown = x[0].numpy()", "shown = x[0].cpu().numpy()"),
    "by keyword": ("shown = np.mean(a=y)", "shown = np.mean(a=y.cpu())"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(imports="import numpy as np", step=CHANGED[name])


def test_scores_of_another_library(changed):
    changed(
        imports="from sklearn.metrics import accuracy_score",
        step=(
            "predicted = output.argmax(1)\nscore = accuracy_score(y, predicted)",
            "predicted = output.argmax(1)\nscore = accuracy_score(y.cpu(), predicted.cpu())",
        ),
    )


def test_a_result_without_a_name(changed):
    changed(
        imports="from sklearn.metrics import accuracy_score",
        step=(
            "score = accuracy_score(y, output.argmax(1))",
            "score = accuracy_score(y.cpu(), output.argmax(1).cpu())",
        ),
    )


def test_a_comparison(changed):
    changed(
        imports="from sklearn.metrics import accuracy_score",
        step=(
            "predicted = output > 0.5\nscore = accuracy_score(y, predicted)",
            "predicted = output > 0.5\nscore = accuracy_score(y.cpu(), predicted.cpu())",
        ),
    )


FIGURES = {
    "axes of several": ("fig, axes = plt.subplots(1, 4)", "axes[0].imshow({})"),
    "one of them": ("fig, ax = plt.subplots()", "ax.plot({})"),
    "of a figure": ("fig = plt.figure()", "fig.add_subplot(1, 2, 1).imshow({})"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_drawn_on_a_figure(changed, name):
    made, drawn = FIGURES[name]
    guard = "if accelerator.is_main_process:\n    {}\n    {}"
    shown = guard.format(made, drawn.format("x[0].cpu()"))
    changed(imports="import matplotlib.pyplot as plt", step=(f"{made}\n{drawn.format('x[0]')}", shown))


def test_a_list_that_has_the_name_of_a_method_of_a_figure(unchanged):
    unchanged(start="ax = []", step="ax.append(x[0].detach())")


@pytest.mark.parametrize("move", ['.to("cpu")', '.to(torch.device("cpu"))', ".cpu()"])
def test_what_is_brought_to_the_host_stays(unchanged, move):
    unchanged(step=f"rows = output.detach(){move}.numpy()")
    unchanged(step=f"rows = output{move}.detach().numpy()")
    unchanged(step=f"rows = output{move}\nshown = rows.detach().numpy()")


@pytest.mark.parametrize("given", ["rows[:, 0] ** 2 + rows[:, 1] ** 2", "-rows", "2 * rows[0]"])
def test_what_is_computed_of_what_is_on_the_host(changed, given):
    shown = "rows = model(torch.zeros(4, 2{})).cpu().detach().numpy()\nlength = np.sqrt({})"
    step = (shown.format("", given), shown.format(", device=accelerator.device", given))
    changed(imports="import numpy as np", step=step)


def test_the_cpu_by_name_beside_the_device(changed):
    device = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    changed(
        accelerator="",
        setup=(device, "accelerator = Accelerator()"),
        made='host = torch.device("cpu")',
        batch=("x, y = x.to(device), y.to(device)", ""),
        step="rows = output.detach().to(host)",
    )


def test_a_loss_shown_by_numpy(changed):
    changed(step=("shown = loss.data.numpy()", "shown = loss.data.cpu().numpy()"))


EVALUATED = """
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def score(model, rows):
    {host}
    return np.mean(ranked)


model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4):
    optimizer.zero_grad()
    (model(x.cuda()) - y.cuda()).pow(2).mean().backward()
    optimizer.step()
print(score(model, torch.ones(3, 2).cuda()))
"""


@pytest.mark.parametrize(
    ("host", "is_there"),
    [
        ("ranked = model(rows).squeeze(1).cpu().numpy()", True),
        ("found = model(rows).detach().cpu()\n    ranked = found[:, 0]", True),
        ("ranked = model(rows)\n    ranked = ranked.cpu()", True),
        ("ranked = model(rows).cpu().data.numpy() if rows.is_cuda else model(rows).data.numpy()", True),
        ("ranked = model(rows).cpu()\n    ranked = model(rows)", False),
        ("ranked = model(rows)\n    if ranked.sum() > 0:\n        ranked = model(rows).cpu()", True),
    ],
)
def test_what_a_name_has_on_the_host_is_not_brought_there_again(convert_text, host, is_there):
    _, result = convert_text(EVALUATED.format(host=host))

    assert ("np.mean(ranked)" if is_there else "np.mean(ranked.cpu())") in result


def test_batches_that_a_list_gives_to_numpy_stay_on_the_cpu(convert_text):
    report, result = convert_text(LISTED)

    assert "model, optimizer, device_placement=[False, True, True]" in " ".join(result.split())
    assert "model(x.to(device))" in result.partition("accelerator.prepare")[2].replace("accelerator.device", "device")
    assert any(f.code == "MIG104" and "np.concatenate" in LISTED.splitlines()[f.line - 1] for f in report.findings)


LISTED = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for x, y in loader:
    loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(y)
print(np.concatenate(seen).mean())
""".lstrip()


SHOW = """\
def show(image):
    image = image / 2 + 0.5
    return image.numpy()
"""
RAW = {
    "at once": "shown = next(iter(loader))[0].numpy()",
    "under names": "batches = iter(loader)\nimages, labels = next(batches)\nshown = images[0].numpy()",
    "by torch": "images, labels = next(iter(loader))\nshown = torch.relu(images).numpy()",
    "in a function": f"{SHOW}images, labels = next(iter(loader))\nshown = show(images[0])",
}


@pytest.mark.parametrize("name", RAW)
def test_a_batch_that_is_taken_before_the_loader_is_prepared_is_on_the_cpu(unchanged, name):
    unchanged(made=RAW[name])


PLACED = {
    "at once": ("shown = next(iter(loader))[0].numpy()", "shown = next(iter(loader))[0].cpu().numpy()"),
    "under names": (
        "images, labels = next(iter(loader))\nshown = images[0].numpy()",
        "images, labels = next(iter(loader))\nshown = images[0].cpu().numpy()",
    ),
    "in a function": (
        f"{SHOW}images, labels = next(iter(loader))\nshown = show(images[0])",
        f"{SHOW}images, labels = next(iter(loader))\nshown = show(images[0])".replace(
            "image.numpy", "image.cpu().numpy"
        ),
    ),
}


@pytest.mark.parametrize("name", PLACED)
def test_a_batch_that_is_taken_behind_it_is_not(changed, name):
    changed(ready=PLACED[name])


def test_a_name_that_the_next_round_gives_something_else_is_not(changed):
    shown = "shown = {}.numpy()\nimages = x"
    changed(made="images, labels = next(iter(loader))", step=(shown.format("images"), shown.format("images.cpu()")))


def test_a_name_that_another_loop_gives_anew_is_not_what_was_put_into_the_list(convert_text):
    _, text = convert_text(
        """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        train_loader = DataLoader(torch.ones(8, 2), batch_size=4)
        val_loader = DataLoader(torch.ones(8, 2), batch_size=4)
        model = nn.Linear(2, 1).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in train_loader:
            optimizer.zero_grad()
            model(x.to(device)).sum().backward()
            optimizer.step()
        for x in val_loader:
            print(torch.autograd.Variable(x).shape)
        """
    )
    assert "device_placement" not in text
