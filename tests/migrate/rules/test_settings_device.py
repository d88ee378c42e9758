"""The device that a file of settings names: it goes on deciding, and what has another name is left."""

import json
import textwrap

import pytest

PROGRAM = """
    import torch
    import yaml
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    with open("config.yml") as file:
        config = yaml.safe_load(file)
    torch.manual_seed(0)
    device = {device}
    model = nn.Linear(4, 4)
    model.to(device)
    loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = model(x.to(device)).mean()
            loss.backward()
            optimizer.step()
"""
NAMED = ["config['device']", "config['train']['device']", "config.get('device', 'cuda')"]
TOLD = {
    **{device: f"torch.device({device}).type == 'cpu'" for device in NAMED},
    "config.get('device', 'cpu')": "torch.device(config.get('device', 'cpu')).type == 'cpu'",
    "config['device'] if torch.cuda.is_available() else 'cpu'": "torch.device(config['device']).type == 'cpu'",
    "config['device'] or 'cuda'": "config['device'] and torch.device(config['device']).type == 'cpu'",
    "config.get('device') or 'cuda'": "config.get('device') and torch.device(config.get('device')).type == 'cpu'",
}
#: What another name stands for is not known, and where there is none nothing is moved.
UNKNOWN = [
    "config['gpu']",
    "config[name]",
    "config.get('where', 'cpu')",
    "config.get('device')",
    "config.get('device', None)",
    "config.pop('device')",
    "config['device'] if name else config['where']",
]


@pytest.mark.parametrize("device", [*NAMED, "config['gpu']", "config.get('where', 'cpu')"])
def test_a_device_that_is_made_of_it_decides_whether_it_is_the_cpu(convert_text, device):
    _, text = convert_text(PROGRAM.format(device=f"torch.device({device})"))
    assert f"Accelerator(cpu=torch.device({device}).type == 'cpu')" in text


#: What the environment says is what a person says, too.
IN_ENVIRONMENT = PROGRAM.replace("import torch\n", "import os\n    import torch\n", 1)
ENVIRONMENT = ["os.getenv('DEVICE', 'cpu')", "os.getenv('WHERE')", "os.environ.get('DEVICE', 'cuda')"]


@pytest.mark.parametrize("device", ENVIRONMENT)
def test_so_does_what_the_environment_names(convert_text, device):
    source = PROGRAM.replace("import torch\n", "import os\n    import torch\n", 1).format(
        device=f"torch.device({device})"
    )
    _, text = convert_text(source)
    assert f"Accelerator(cpu=torch.device({device}).type == 'cpu')" in text


@pytest.mark.parametrize("device", ["os.getenv('WHERE')", "os.getenv('DEVICE') or 'cpu'"])
def test_a_text_of_the_environment_is_no_device_that_is_known(refused_text, device):
    source = IN_ENVIRONMENT.format(device=device)
    refused_text(source.replace("    model.to(device)\n", ""), "MIG103", "x.to(device)")


def test_so_it_does_where_it_is_one_of_two(convert_text):
    device = "torch.device(config['device'] if torch.cuda.is_available() else 'cpu')"
    _, text = convert_text(PROGRAM.format(device=device))
    assert "Accelerator(cpu=torch.device(config['device']).type == 'cpu')" in text


@pytest.mark.parametrize("device", TOLD)
def test_so_does_what_is_called_a_device(convert_text, device):
    _, text = convert_text(PROGRAM.format(device=device))
    assert f"Accelerator(cpu={TOLD[device]})" in text


@pytest.mark.parametrize("device", UNKNOWN)
def test_where_it_moves_to_is_not_known(refused_text, device):
    source = PROGRAM.format(device=device).replace("    model.to(device)\n", "")
    refused_text(source, "MIG103", "x.to(device)")


@pytest.mark.parametrize("device", NAMED)
def test_it_may_stand_where_things_are_moved(convert_text, device):
    source = PROGRAM.format(device="None").replace("device = None", "pass").replace("to(device)", f"to({device})")
    _, text = convert_text(source)
    assert f"Accelerator(cpu=torch.device({device}).type == 'cpu')" in text
    assert ".to(" not in text


OF_PARTS = """
    import json

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Trainer:
        def __init__(self, config):
            self.config = config
            self.device = config["device"]
            self.model = nn.Linear(4, 1).to(self.device)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config["lr"])
            self.loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)

        def train(self):
            for epoch in range(self.config["epochs"]):
                for (x,) in self.loader:
                    self.optimizer.zero_grad()
                    loss = self.model(x.to(self.device)).pow(2).mean()
                    loss.backward()
                    self.optimizer.step()
                print(epoch, loss.device.type, round(loss.item(), 6))


    def settings():
        with open("{file}") as file:
            return json.load(file)


    if __name__ == "__main__":
        torch.manual_seed(0)
        trainer = Trainer(settings())
        trainer.train()
"""


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_so_it_does_in_an_object_that_is_handed_the_settings(convert_text, on_pretended_gpu, tmp_path, device):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"device": device, "lr": 0.1, "epochs": 2}))
    source = textwrap.dedent(OF_PARTS).replace("{file}", str(file))
    _, text = convert_text(source)
    assert 'self.accelerator = Accelerator(cpu=torch.device(config["device"]).type == "cpu")' in text
    printed = on_pretended_gpu(text)
    assert printed == on_pretended_gpu(source)
    assert f"1 {device} " in printed


HANDED = """
    import torch
    import yaml
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Learner:
        def __init__(self, model, loader, optimizer, device):
            self.model, self.loader, self.optimizer, self.device = model, loader, optimizer, device

        def fit(self):
            for (x,) in self.loader:
                self.optimizer.zero_grad()
                loss = self.model(x.to(self.device)).pow(2).mean()
                loss.backward()
                self.optimizer.step()


    def main():
        config = yaml.safe_load(open("config.yaml"))
        device = {device}
        model = nn.Linear(4, 1).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        Learner(model, DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8), optimizer, device).fit()


    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize("device", [*NAMED, "config.get('device', 'cpu') if torch.cuda.is_available() else 'cpu'"])
def test_so_it_does_where_a_function_is_handed_it(convert_text, device):
    _, text = convert_text(HANDED.format(device=device))
    assert "self.accelerator = Accelerator(cpu=torch.device(device).type == 'cpu')" in text.replace('"', "'")


def test_where_it_is_chosen_below_it_is_told_that_it_has_no_say(convert_text):
    device = "config.get('device', 'cpu') if torch.cuda.is_available() else 'cpu'"
    source = PROGRAM.format(device=device).replace(
        '    with open("config.yml")', '    def train():\n    with open("config.yml")'
    )
    head, body = textwrap.dedent(source).split("def train():\n")
    folds = 'if __name__ == "__main__":\n    for fold in range(2):\n        print(fold)\n        train()\n'
    report, text = convert_text(f"{head}def train():\n{textwrap.indent(body, '    ')}\n\n{folds}")
    assert "accelerator = Accelerator()" in text
    assert any("also where torch.device(config.get('device', 'cpu'))" in each.message for each in report.findings)


BY_MAPPING = """
    import argparse

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    opts = {opts}
    torch.manual_seed(0)
    model = nn.Linear(4, 1).to(opts["device"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8):
        optimizer.zero_grad()
        loss = model(x.to(opts["device"])).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(loss.device.type, round(loss.item(), 6))
"""


@pytest.mark.parametrize("opts", ["vars(parser.parse_args())", "parser.parse_args().__dict__"])
@pytest.mark.parametrize("said", [(), ("--device", "cpu")])
def test_the_mapping_of_the_command_line_says_what_its_attributes_say(convert_text, on_pretended_gpu, opts, said):
    source = textwrap.dedent(BY_MAPPING).replace("{opts}", opts)
    _, text = convert_text(source)
    assert 'Accelerator(cpu=torch.device(opts["device"]).type == "cpu")' in text
    assert on_pretended_gpu(text, *said) == on_pretended_gpu(source, *said)


def test_the_cpu_that_is_set_where_there_is_nothing_else_does_not_keep_the_program_there(refused_text):
    override = "if not torch.cuda.is_available():\n        config['device'] = 'cpu'"
    source = PROGRAM.format(device="None").replace("device = None", override)
    refused_text(source.replace("to(device)", "to(config['device'])"), "MIG103", "config['device']")


def test_so_it_is_asked_where_a_device_is_made_of_it_below(convert_text):
    device = "config['device'] = 'cpu'\n    device = torch.device(config['device'])"
    _, text = convert_text(PROGRAM.format(device="None").replace("device = None", device))
    asked = "accelerator = Accelerator(cpu=torch.device(config['device']).type == 'cpu')"
    assert text.index("config['device'] = 'cpu'") < text.index(asked)


def test_what_the_program_sets_in_any_case_is_its_own(convert_text):
    chosen = "config['device'] = torch.device('cuda' if torch.cuda.is_available() else 'cpu')"
    source = PROGRAM.format(device="None").replace("device = None", chosen)
    _, text = convert_text(source.replace("to(device)", "to(config['device'])"))
    assert "Accelerator()" in text


NOT_KNOWN = [("model", "device"), ("x", "self.device")]


def test_an_object_that_holds_its_device_is_left_with_its_default_too(convert_text):
    source = PROGRAM.format(device="config.get('where', 'cpu')")
    first, second = source.split("    loader = ")
    trainer = (
        "    class Trainer:\n        def __init__(self, model, device=torch.device('cpu')):\n"
        "            self.model, self.device = model, device\n"
        "            self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n\n"
        "        def fit(self, loader):\n            for (x,) in loader:\n                self.optimizer.zero_grad()\n"
        "                loss = self.model(x.to(self.device)).mean()\n                loss.backward()\n"
        "                self.optimizer.step()\n\n\n"
    )
    loader = second.splitlines()[0]
    source = f"{first}    loader = {loader}\n{trainer}    Trainer(model, device).fit(loader)\n"
    report, _ = convert_text(source)
    assert not report.changes
    left = {finding.message for finding in report.findings if finding.code == "MIG103"}
    assert left == {f"what {call}.to({device}) moves to is not known" for call, device in NOT_KNOWN}
