"""What a program takes from a checkpoint by the keys that its model has is found in files of DataParallel, too."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


{function}


def main():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 24).view(8, 3)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4)
    model = {model}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    saved = torch.load("old.pt")
    {load}
    for x, y in loader:
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main()
"""
STRIP = 'torch.nn.modules.utils.consume_prefix_in_state_dict_if_present({}, "module.")\n'
PICKS = {
    "picked": """
def take(saved, model):
    own = model.state_dict()
    saved = {k: v for k, v in saved.items() if k in own and v.size() == own[k].size()}
    own.update(saved)
    model.load_state_dict(own)
""",
    "in a loop": """
def take(saved, model):
    own = model.state_dict()
    for name, value in saved.items():
        if name not in own:
            continue
        own[name].copy_(value)
""",
    "the other way round": """
def take(saved, model):
    own = model.state_dict()
    for name in own:
        if name in saved.keys():
            own[name].copy_(saved[name])
""",
}


@pytest.mark.parametrize("name", PICKS)
def test_what_the_model_has_is_found_in_old_files(convert_text, numbers_printed, tmp_path, name):
    holes = {"function": PICKS[name], "load": "take(saved['net'], model)"}
    source = SOURCE.format(model="nn.DataParallel(nn.Linear(3, 1))", **holes)
    old = "{'net': {'module.weight': torch.ones(1, 3), 'module.bias': torch.ones(1)}}"
    writes = f"import torch\ntorch.save({old}, 'old.pt')\n"
    _, result = convert_text(source)

    assert result.count(STRIP.format("saved")) == 1
    assert result.index(STRIP.format("saved")) < result.index(" in saved" if "way" in name else "saved.items()")
    assert numbers_printed((writes + result).replace("old.pt", f"{tmp_path}/old.pt"), 1) == pytest.approx([1.0, 1.0])


def test_what_has_no_name_is_plain_where_it_is_picked(convert_text):
    load = 'own = model.state_dict()\n    own.update({k: v for k, v in torch.load("b.pt").items() if k in own})'
    source = SOURCE.format(
        function="", model="nn.DataParallel(nn.Linear(3, 1))", load=f"{load}\n    model.load_state_dict(own)"
    )
    _, result = convert_text(source)

    plain = (
        '{key.removeprefix("module."): value for key, value in torch.load("b.pt", map_location="cpu").items()}.items()'
    )
    assert plain in result
    assert "consume_prefix" not in result


ASKS_ITSELF = """
class Net(nn.Linear):
    def take(self, saved):
        own = self.state_dict()
        own.update({k: v for k, v in saved.items() if k in own})
"""
KEPT = {
    "a model that was never wrapped": (
        "",
        "nn.Linear(3, 1)",
        "own = model.state_dict()\n    model.load_state_dict({k: v for k, v in saved.items() if k in own})",
    ),
    "other keys": (
        "",
        "nn.DataParallel(nn.Linear(3, 1))",
        "own = model.state_dict()\n    print(len([k for k in own if k in ['bias']]))",
    ),
    "the model's own question": (
        ASKS_ITSELF,
        "nn.DataParallel(Net(3, 1))",
        "model.module.take(saved)",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_questions_stay(convert_text, name):
    function, model, load = KEPT[name]
    _, result = convert_text(SOURCE.format(function=function, model=model, load=load))

    assert "accelerator.backward" in result
    assert "module." not in result
