import pytest

UNCHANGED = {
    "another object's backward": {"step": "history.backward(loss)"},
    "a backward of the project's own": {
        "setup": "class Tape:\n    def backward(self):\n        return 1\n\ntape = Tape()",
        "step": "tape.backward()",
    },
    "an autograd function's": {
        "setup": """
            class Double(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return 2 * x

                @staticmethod
                def backward(ctx, gradient):
                    return 2 * gradient
            """,
        "forward": "Double.apply(model(x))",
    },
    "the name in a text": {"step": 'text = "loss.backward()"'},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


CHANGED = {
    "plain": ("loss.backward()", "accelerator.backward(loss)"),
    "with options": (
        "loss.backward(retain_graph=True, create_graph=True)",
        "accelerator.backward(loss, retain_graph=True, create_graph=True)",
    ),
    "from one of each": (
        "loss.backward(torch.ones_like(loss), True)",
        "accelerator.backward(loss, gradient=torch.ones_like(loss), retain_graph=True)",
    ),
    "from the size of the loss": (
        "loss.backward(-torch.ones(loss.size()))",
        "accelerator.backward(loss, gradient=-torch.ones(loss.size(), device=accelerator.device))",
    ),
    "from nothing": ("loss.backward(None, create_graph=True)", "accelerator.backward(loss, create_graph=True)"),
    "from a number": (
        "loss.backward(gradient=torch.tensor(-1.0))",
        "accelerator.backward(loss, gradient=torch.tensor(-1.0, device=accelerator.device))",
    ),
    "of a sum": ("(loss + output.mean()).backward()", "accelerator.backward(loss + output.mean())"),
    "of a call": ("criterion(output, y).backward()", "accelerator.backward(criterion(output, y))"),
    "of an element": ("[loss][0].backward()", "accelerator.backward([loss][0])"),
    "of an attribute's value": ("loss.mean().backward()", "accelerator.backward(loss.mean())"),
    "with a comment": ("loss.backward()  # gradients", "accelerator.backward(loss)  # gradients"),
    "after a semicolon": ("loss = 2 * loss; loss.backward()", "loss = 2 * loss; accelerator.backward(loss)"),
    "two": (
        "loss.backward(retain_graph=False)\nmodel(x).sum().backward()",
        "accelerator.backward(loss, retain_graph=False)\naccelerator.backward(model(x).sum())",
    ),
    "under a condition": ("if epoch:\n    loss.backward()", "if epoch:\n    accelerator.backward(loss)"),
    "autograd's": (
        "torch.autograd.backward(loss, retain_graph=True)",
        "accelerator.backward(loss, retain_graph=True)",
    ),
    "autograd's of one in a list": (
        "torch.autograd.backward([loss], [torch.ones_like(loss)])",
        "accelerator.backward(loss, gradient=torch.ones_like(loss))",
    ),
    "autograd's of two": (
        "torch.autograd.backward((loss, 2 * output.mean() if epoch else loss), [None, torch.ones(())])",
        "accelerator.backward(loss + (2 * output.mean() if epoch else loss))",
    ),
    "autograd's of a list, from ones that nobody else reads": (
        "losses = [loss]\nones = [torch.tensor(1.0) for _ in losses]\ntorch.autograd.backward(losses, ones)",
        "losses = [loss]\naccelerator.backward(sum(losses))",
    ),
    "over several lines": (
        "(\n    loss\n    + 0.1 * output.mean()  # keep small\n).backward()",
        "accelerator.backward((\n    loss\n    + 0.1 * output.mean()  # keep small\n))",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(backward=CHANGED[name])


def test_in_a_function_of_its_own(changed):
    function = "def descend(value):\n    value.backward()"
    report = changed(
        setup=(function, function.replace("value.backward()", "accelerator.backward(value)")),
        backward="descend(loss)",
    )
    assert not report.of(next(f.kind for f in report.findings).LEFT)


NAMED = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.zeros(8, 2)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
{setup}
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward(minus_one)
    optimizer.step()
"""
REFUSED = {
    "a gradient by name": ("loss.backward(gradient=torch.ones(8))", "`torch.ones(8)` may have the size of all of it"),
    "a gradient by position": ("loss.backward(model.weight.sum())", "`model.weight.sum()` may have the size"),
    "the size of something else": ("loss.backward(torch.ones_like(output))", "may have the size of all of it"),
    "as many as a number says": ("loss.backward(torch.FloatTensor(8))", "may have the size of all of it"),
    "inputs": ("loss.backward(inputs=list(model.parameters()))", "backward(inputs=...) has no counterpart"),
    "unknown options": ("loss.backward(**options)", "what backward is given is not seen"),
    "autograd with gradients": (
        "torch.autograd.backward([loss, output.mean()], [torch.tensor(1.0), torch.tensor(0.5)])",
        "starts from gradients that are not seen to be ones",
    ),
    "autograd of what nobody knows": (
        "torch.autograd.backward(given(loss))",
        "is given what is not seen to be one tensor or a list of them",
    ),
    "distributed autograd": (
        "torch.distributed.autograd.backward(context, [loss])",
        "torch.distributed.autograd.backward has no counterpart",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    backward, mention = REFUSED[name]
    refused("MIG105", backward, [mention], backward=backward)


AUTOGRAD = {
    "from ones that change": (
        "ones = [torch.tensor(1.0), torch.tensor(1.0)]\n    ones[0] *= 2",
        "torch.autograd.backward([loss, x.mean()], ones)",
        "torch.autograd.backward starts from gradients that are not seen to be ones",
    ),
    "of stochastic functions": (
        "action = model(x).multinomial()\n    action.reinforce(1.0)",
        "torch.autograd.backward([loss, action], [torch.ones(1), minus_one])",
        "action.reinforce(1.0) (line 13) is of the stochastic functions, which PyTorch has no more since 0.4",
    ),
    "of losses to which a name of the program's own leads": (
        "sum = [loss, loss * loss]",
        "torch.autograd.backward(sum)",
        "torch.autograd.backward is given what is not seen to be one tensor or a list of them",
    ),
}


@pytest.mark.parametrize("name", AUTOGRAD)
def test_what_autograd_starts_from_is_not_plain(convert_text, name):
    made, call, mention = AUTOGRAD[name]
    report, result = convert_text(NAMED.format(setup="").replace("loss.backward(minus_one)", f"{made}\n    {call}"))

    assert "Accelerator" not in result
    assert mention in str([finding.message for finding in report.findings])


@pytest.mark.parametrize(
    "setup",
    [
        "one = torch.FloatTensor([1])\nminus_one = one * -1",
        "one = torch.tensor(1.0)\nminus_one = -one",
        "one, minus_one = torch.ones(1), torch.full((1,), -1.0)",
        "minus_one = torch.ones((1, 1)).neg()\nminus_one = minus_one.clone()",
    ],
)
def test_a_number_with_a_name(convert_text, setup):
    _, result = convert_text(NAMED.format(setup=setup))

    assert "accelerator.backward(loss, gradient=minus_one)" in result
    assert "Accelerator(cpu=True)" in result  # nothing says that it would follow the model


def test_a_number_that_is_given_another_size(convert_text):
    report, result = convert_text(NAMED.format(setup="minus_one = torch.ones(1)\nminus_one.resize_(4)"))

    assert "Accelerator" not in result
    assert "may have the size of all of it" in str(report.findings)


def test_one_gradient_for_each_value_of_the_loss_is_said(changed):
    report = changed(
        backward=(
            "loss.backward(torch.ones_like(loss))",
            "accelerator.backward(loss, gradient=torch.ones_like(loss))",
        )
    )
    assert "N processes average gradients" in str([f.message for f in report.findings if f.code == "MIG105"])
