import pytest

UNCHANGED = {
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


@pytest.mark.xfail(strict=True, reason="defect A: a tensor without a name goes to the library from the GPU")
def test_a_result_without_a_name(changed):
    changed(
        imports="from sklearn.metrics import accuracy_score",
        step=(
            "score = accuracy_score(y, output.argmax(1))",
            "score = accuracy_score(y.cpu(), output.argmax(1).cpu())",
        ),
    )
