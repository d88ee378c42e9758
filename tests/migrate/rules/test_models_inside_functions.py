"""Classes of models that a function defines: their `self` is the model, as that of any other is."""

import pytest

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)
"""
HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"
IN_A_FUNCTION = """
def train():
{net}
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), batch_size={size})
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss({call}, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(model.layer.weight.sum().item())


train()
"""


def indented(text, by):
    return "".join(f"{' ' * by}{line}" if line.strip() else line for line in text.splitlines(keepends=True))


def program(call, size=4):
    return HEAD + IN_A_FUNCTION.format(net=indented(NET, 4), call=call, size=size)


@pytest.mark.parametrize("call", ["model(x)", "model.forward(x)"])
def test_a_class_in_a_function_stays(convert_text, numbers_printed, call):
    report, result = convert_text(program(call))

    assert indented(NET, 4) in result
    assert not [finding for finding in report.findings if finding.code == "MIG119"]
    (alone,) = numbers_printed(program(call), 1)
    assert numbers_printed(result, 1) == [alone]
    assert numbers_printed(result.replace("batch_size=4", "batch_size=2"), 2) == [pytest.approx(alone, abs=1e-6)]


def test_a_class_in_a_method_stays(convert_text):
    lines = IN_A_FUNCTION.format(net=indented(NET, 4), call="model.forward(x)", size=4).strip().splitlines()
    method = "\n".join(f"    {line}" if line else line for line in lines[:-3])
    report, result = convert_text(
        HEAD + "\n\nclass Case:\n" + method.replace("train():", "test(self):") + "\n\n\nCase().test()\n"
    )

    assert "self.accelerator.backward(loss)" in result
    assert "return self.layer(x)" in result
    assert not [finding for finding in report.findings if finding.code == "MIG119"]


def test_a_model_of_the_function_around_is_still_opened(convert_text):
    _, result = convert_text(program("model.layer(x)"))

    assert "accelerator.unwrap_model(model).layer(x)" in result
