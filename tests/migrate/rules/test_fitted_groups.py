"""Groups that scikit-learn finds in all of the data, from a random beginning: labels are the same on all processes."""

import pytest

PROGRAM = """
import numpy as np
import torch
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
SEED
x = torch.randn(64, 4)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.eval()
    with torch.no_grad():
        features = model(x).numpy()
    labels = GROUPS
    loader = DataLoader(TensorDataset(x, torch.as_tensor(labels).long()), batch_size=8, shuffle=True)
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
"""
SET = "set_seed(broadcast_object_list("
GROUPS = {
    "labels of groups": "KMeans(n_clusters=3).fit_predict(features)",
    "a mixture": "GaussianMixture(n_components=2).fit(features).predict(features)",
    "a mixture that has a name": "(mixture := GaussianMixture(2)).fit(features).predict_proba(features).argmax(1)",
    "components": "PCA(2).fit_transform(features).argmax(1)",
}
ALIKE = {
    "a state of its own": ("KMeans(n_clusters=3, random_state=0).fit_predict(features)", ""),
    "NumPy is seeded": ("KMeans(n_clusters=3).fit_predict(features)", "np.random.seed(0)"),
    "nothing is drawn": ("DBSCAN().fit_predict(features)", ""),
}


def program(groups: str, seed: str = "") -> str:
    return PROGRAM.replace("GROUPS", groups).replace("SEED\n", f"{seed}\n" if seed else "").lstrip()


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_the_same_on_all(convert_text, name):
    _, result = convert_text(program(GROUPS[name]))
    assert SET in result


@pytest.mark.parametrize("name", ALIKE)
def test_groups_that_are_the_same_anyway(convert_text, name):
    _, result = convert_text(program(*ALIKE[name]))
    assert "accelerator.prepare(" in result
    assert SET not in result


def test_centres_that_become_weights(convert_text):
    centres = "model.weight.data = torch.tensor(KMeans(3).fit(x.numpy()).cluster_centers_)"
    source = program("[0] * 64").replace("    model.eval()", f"    if epoch == 1:\n        {centres}\n    model.eval()")
    _, result = convert_text(source)
    assert SET in result


def test_groups_before_there_is_an_accelerator(refused_text):
    source = program("labels").replace("    labels = labels\n", "")
    begin, end = source.index("x = torch"), source.index("model = nn")
    body = source[end:].rstrip().replace("\n", "\n    ")
    labels = "x = torch.randn(64, 4)\nlabels = KMeans(3).fit_predict(x.numpy())"
    text = f"{source[:begin]}{labels}\n\n\ndef main():\n    {body}\n\n\nmain()\n"
    refused_text(text, "MIG123", "KMeans(3)", ("draws something here",))
