"""The standard library's logging is silenced where its name means something else, too."""

import pytest

PROGRAM = """
import sys

{imports}
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


{top}
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    {made}
    torch.manual_seed(0)
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=2):
        loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    log.info("7")


main()
"""
MAKING = """
def make(stream):
    import logging
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=stream)
    return logging


"""
TAKEN = {
    "a variable": ("", MAKING.lstrip(), "logging = log = make(sys.stdout)"),
    "an import in the function": (
        "",
        "",
        "import logging\n    logging.basicConfig(level=20, format='%(message)s', stream=sys.stdout)\n    log = logging",
    ),
    "another module": (
        "from logging import basicConfig, getLogger\nfrom torch import serialization as logging",
        "",
        'basicConfig(level="INFO", format="%(message)s", stream=sys.stdout)\n    log = getLogger()',
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_its_name_is_taken(convert_text, numbers_printed, name):
    imports, top, made = TAKEN[name]
    _, result = convert_text(PROGRAM.format(imports=imports, top=top, made=made))

    assert "    if not accelerator.is_main_process:\n        disable(INFO)\n" in result
    assert numbers_printed(result, 2) == [7]


def test_its_name_is_free(convert_text):
    made = "log = logging.getLogger()"
    _, result = convert_text(PROGRAM.format(imports="import logging", top="", made=made))

    assert "    if not accelerator.is_main_process:\n        logging.disable(logging.INFO)\n" in result


def test_a_model_that_is_logged_is_the_one_inside(convert_text):
    source = PROGRAM.format(imports="import logging", top="", made="log = logging.getLogger()")
    _, result = convert_text(source.replace('log.info("7")', "log.info(model)"))

    assert "    log.info(accelerator.unwrap_model(model))\n" in result
