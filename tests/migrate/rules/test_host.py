import pytest

UNCHANGED = {
    "already there": {"epoch": "shown = output.detach().cpu().numpy()"},
    "another tensor": {"setup": "rows = torch.randn(3)", "epoch": "shown = rows.numpy()"},
    "a number": {"imports": "import numpy as np", "epoch": "shown = np.array(loss.item())"},
    "torch's own functions": {"epoch": "shown = torch.stack([output])"},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


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
    changed(imports="import numpy as np", batch=CHANGED[name] if "output" not in CHANGED[name][0] else "", step=CHANGED[name] if "output" in CHANGED[name][0] else "")


def test_scores_of_another_library(changed):
    changed(
        imports="from sklearn.metrics import accuracy_score",
        step=(
            "labels, predicted = y, output.argmax(1)\nscore = accuracy_score(labels, predicted)",
            "labels, predicted = y, output.argmax(1)\nscore = accuracy_score(labels.cpu(), predicted.cpu())",
        ),
    )
