"""Gradients that a program sets itself: what torch.autograd.grad gives is each process's own."""

import pytest

TAKEN = "gradients = torch.autograd.grad(loss, list(model.parameters()))\n"
SET = {
    "one by one": "for parameter, gradient in zip(model.parameters(), gradients):\n    parameter.grad = gradient",
    "computed": "for parameter, gradient in zip(model.parameters(), gradients):\n    parameter.grad = 2 * gradient",
    "at once": "model.weight.grad = torch.autograd.grad(loss, model.weight)[0]",
}


@pytest.mark.parametrize("name", SET)
def test_what_each_process_computes_alone_is_refused(refused, name):
    text = TAKEN + SET[name]
    refused("MIG105", ".grad = ", ["torch.autograd.grad"], step=text + "\noptimizer.step()")


KEPT = {
    "taken away": "model.weight.grad = None",
    "made smaller": "model.weight.grad = model.weight.grad / 2",
    "zeros": "model.weight.grad = torch.zeros_like(model.weight)",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_made_of_gradients_that_are_there_stays(changed, name):
    text = TAKEN.replace("loss, ", "criterion(model(x), y), ") + KEPT[name]
    changed(step=(text, text.replace("model.weight", "accelerator.unwrap_model(model).weight")))


def test_a_hook_that_steps_inside_of_backward_is_refused(refused):
    hook = "def step_at_once(parameter):\n    optimizer.step()\nfor parameter in model.parameters():\n    {}"
    call = "parameter.register_post_accumulate_grad_hook(step_at_once)"
    refused("MIG105", call, ["inside of backward"], ready=hook.format(call))
