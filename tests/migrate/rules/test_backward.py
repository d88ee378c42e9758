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


REFUSED = {
    "a gradient by name": ("loss.backward(gradient=torch.ones(()))", "backward(gradient=...)"),
    "a gradient by position": ("loss.backward(torch.ones(()))", "backward(gradient=...)"),
    "inputs": ("loss.backward(inputs=list(model.parameters()))", "backward(gradient=...)"),
    "unknown options": ("loss.backward(**options)", "backward(gradient=...)"),
    "autograd": ("torch.autograd.backward([loss])", "torch.autograd.backward"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(refused, name):
    backward, mention = REFUSED[name]
    refused("MIG105", backward, [mention, "no counterpart"], backward=backward)
