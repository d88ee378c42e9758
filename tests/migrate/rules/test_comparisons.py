"""Losses that compare the rows of a batch with each other: `migrate/programs/training/comparisons.py`."""

import pytest

from migrate.report.model import Kind

SAYS = "compares the rows of a batch with each other"
IMPORTS = "import torch.nn.functional as F"


def told(report, source):
    lines = source.splitlines()
    return [lines[f.line - 1].strip() for f in report.of(Kind.NOTE) if f.code == "MIG114" and SAYS in f.message]


COMPARING = {
    "a product": "loss = loss + (output @ output.t()).mean()",
    "a product with another view": "other = model(x + 1)\nloss = loss + torch.mm(output, other.T).exp().mean()",
    "a product with what is turned and laid out anew": "loss = loss + (output @ output.t().contiguous()).exp().mean()",
    "a method": "loss = loss + output.matmul(output.transpose(0, 1)).mean()",
    "views under each other": "rows = torch.cat([output, model(x)], dim=0)\nloss = loss + (rows @ rows.t()).mean()",
    "of a norm": "rows = F.normalize(output, dim=1)\nloss = loss + torch.matmul(rows, rows.permute(1, 0)).mean()",
    "a similarity": "loss = loss + F.cosine_similarity(output.unsqueeze(1), output.unsqueeze(0), dim=2).mean()",
    "distances": "apart = output.unsqueeze(0) - output.unsqueeze(1)\nloss = loss + apart.pow(2).mean()",
    "distances by items": "apart = output[:, None] - output[None]\nloss = apart.pow(2).mean()",
    "inside of a function": "loss = loss + between(output, model(x))",
    "a sum by letters": "logits = torch.einsum('ik, jk -> ij', output, model(x))\nloss = F.cross_entropy(logits, y)",
    "views that stand in one batch": (
        "bsz = y.shape[0]\na, b = torch.split(model(torch.cat([x, x + 1])), [bsz, bsz], dim=0)\n"
        "views = torch.cat([a.unsqueeze(1), b.unsqueeze(1)], dim=1)\n"
        "rows = torch.cat(torch.unbind(views, dim=1), dim=0)\nloss = loss + (rows @ rows.T).mean()"
    ),
    "halves of one batch": (
        "a, b = model(torch.cat([x, x + 1])).split([len(y), len(y)])\nloss = loss + (a @ b.t()).mean()"
    ),
    "views of each sample": (
        "rows = torch.stack([output, model(x + 1)], dim=1).view(len(y), -1)\n"
        "a, b = rows.chunk(2, dim=1)\nloss = loss + (a @ b.t()).mean()"
    ),
    "labels": "same = y[:, None] == y[None]\nloss = loss + (torch.cdist(output, output) * same[..., 0]).mean()",
    "distances that are added in place": "d = torch.ones(4, 4).addmm_(output, output.t())\nloss = loss + d.mean()",
}
WITHIN = {
    "weights": "loss = loss + (x @ model.weight.t()).mean()",
    "centres": "centres = torch.ones(3, 1)\nloss = loss + (output @ centres.t()).mean()",
    "weights that are laid out anew": "loss = loss + (x @ model.weight.t().contiguous()).mean()",
    "points of each sample": "loss = loss + torch.cdist(output, y).mean()",
    "the columns of each sample": "maps = output[:, None]\nloss = loss + maps.bmm(maps.transpose(1, 2)).mean()",
    "a score that is only shown": "print((output @ output.t()).mean())",
    "a mask of labels": "same = y.unsqueeze(0) == y.unsqueeze(1)\nprint(same)",
    "labels and classes": "hot = y[:, None] == torch.arange(3)[None]\nloss = loss + (output * hot[..., 0]).mean()",
    "a new dimension on both": "loss = loss + (output.unsqueeze(1) - y.unsqueeze(1)).pow(2).mean()",
    "rows by columns": "loss = loss + (output.t() @ output).mean()",
    "halves of weights": "a, b = model.weight.t().split([1, 1])\nloss = loss + (a @ b.t()).mean()",
    "one view under another": "rows = torch.stack([x, x])[0]\nloss = loss + (rows.sum(0) @ rows.sum(0).t()).mean()",
    "a dimension before the rows": "a = output.mean().unsqueeze(0).unsqueeze(0)\nloss = loss + (a @ a.t()).mean()",
    "a sum by letters within each row": "loss = loss + torch.einsum('ij,ik->ijk', output, output).mean()",
    "a sum by letters over the rows": "loss = loss + torch.einsum('ij,kj->k', output, output).mean()",
    "a sum by letters with weights": "loss = loss + torch.einsum('ij,kj->ik', x, model.weight).mean()",
}
BETWEEN = "def between(a, b):\n    rows = F.normalize(a, dim=1)\n    return (rows @ b.t()).mean()"


@pytest.mark.parametrize("name", COMPARING)
def test_what_compares_rows_is_told(convert_text, programs, name):
    code = COMPARING[name]
    source = programs({"imports": IMPORTS, "setup": BETWEEN, "backward": f"{code}\nloss.backward()"})[0]
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    assert len(told(report, source)) == 1
    assert told(report, source)[0] in (*code.splitlines(), "return (rows @ b.t()).mean()")


@pytest.mark.parametrize("name", WITHIN)
def test_what_does_not_is_not(convert_text, programs, name):
    source = programs({"imports": IMPORTS, "backward": f"{WITHIN[name]}\nloss.backward()"})[0]
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    assert not told(report, source)


LOSS = """\
class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.similarity = nn.CosineSimilarity(dim=2)

    def forward(self, features, labels):
{body}
        return logits.mean()
"""
FORWARDS = {
    "views of each sample": (
        """
features = features.view(features.shape[0], -1)
rows = torch.cat(torch.unbind(features, dim=1), dim=0)
anchor = rows
if labels is None:
    anchor = features[:, 0]
logits = torch.div(torch.matmul(anchor, rows.T), 0.07)
""",
        "logits = torch.div",
    ),
    "a layer that compares": (
        """
rows = torch.cat((features, labels), dim=0)
logits = self.similarity(rows.unsqueeze(1), rows.unsqueeze(0)) / 0.5
""",
        "logits = self.similarity",
    ),
    "of norms": ("a = features / features.norm()\nlogits = a.float() @ labels.to(a.dtype).t()", "logits ="),
}
OTHERS = {
    "what is not known": "rows = self.head(features)\nlogits = rows @ rows.t()",
    "one of them not known": "logits = features @ self.centres.t()",
    "the samples side by side": "rows = torch.cat((features, labels), dim=1)\nlogits = rows.sum() @ rows.sum().t()",
    "a view of other rows": "rows = features.view(-1, 2)\nlogits = rows @ rows.t()",
    "one of all samples": "rows = features[0]\nlogits = rows @ rows.t()",
    "rows at times": "rows = features\nif labels is None:\n    rows = self.queue\nlogits = rows @ rows.t()",
}


def with_loss(body):
    return LOSS.format(body="\n".join(f"        {line}" for line in body.splitlines()))


def with_criterion(programs, body):
    source = programs({"imports": IMPORTS, "setup": with_loss(body)})[0]
    return source.replace("nn.MSELoss()", "Contrast()")


@pytest.mark.parametrize("name", FORWARDS)
def test_the_forward_of_a_loss_is_looked_at(convert_text, programs, name):
    body, at = FORWARDS[name]
    source = with_criterion(programs, body)
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    (line,) = told(report, source)
    assert line.startswith(at)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_certain_in_it_is_not_told(convert_text, programs, name):
    source = with_criterion(programs, OTHERS[name])
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    assert not told(report, source)


def test_what_the_trained_model_compares_of_what_it_is_given_is_told(convert_text, programs):
    model = "class Net(nn.Linear):\n    def forward(self, x):\n        return super().forward(x) + (x @ x.t()).mean()"
    source = programs({"setup": model, "model": "model = Net(2, 1)"})[0]
    report, _ = convert_text(source)

    assert told(report, source) == ["return super().forward(x) + (x @ x.t()).mean()"]


TWO_TOWERS = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(4, 3), nn.Linear(5, 3)
        self.codes = nn.Parameter(torch.ones(6, 3))

    def forward(self, batch, text):
        {body}
        return F.cross_entropy(logits, torch.zeros(len(text), dtype=torch.long))


model = Towers()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 5)), batch_size=4)
for x, t in loader:
    loss = model({{"image": x}}, t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
INSIDE = {
    "towers": 'one = self.image(batch["image"])\n        logits = one @ self.text(text).t()',
    "normed": "one = F.normalize(self.text(text), dim=1)\n        logits = 3.0 * (one @ one.T)",
    "pooled": "one, two = self.text(text[:, None]).mean(1), text[:, :3]\n        logits = torch.matmul(one, two.t())",
}
NOT_INSIDE = {
    "weights": "logits = self.text(text) @ self.codes.t()",
    "a sample": "logits = torch.stack([self.text(text)[i] @ self.codes[:1].t() for i in range(4)])",
    "parts of a sample": "one = self.text(text[:, None].repeat(1, 2, 1))\n        logits = one @ one.transpose(1, 2)",
    "over the batch": "one = self.text(text).mean(0)\n        logits = self.text(text) * (one @ one.t())",
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_a_model_compares_itself_is_told(convert_text, name):
    source = TWO_TOWERS.format(body=INSIDE[name])
    report, _ = convert_text(source)

    assert len(told(report, source.lstrip("\n"))) == 1


@pytest.mark.parametrize("name", NOT_INSIDE)
def test_what_a_model_does_not_compare_is_not(convert_text, name):
    source = TWO_TOWERS.format(body=NOT_INSIDE[name])
    report, result = convert_text(source)

    assert "accelerator.backward(" in result
    assert not told(report, source)
