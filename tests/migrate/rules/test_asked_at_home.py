"""A device that a flag chooses, kept in whatever place: the accelerator asks what the function that makes it reads."""

import textwrap

import pytest

PROGRAM = """
    import argparse
    from dataclasses import dataclass
    from types import SimpleNamespace

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    {above}


    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--cpu", action="store_true")
        args = parser.parse_args()
        {made}
        model = nn.Linear(4, 2).to({device})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64).long()), batch_size=8)
        {use}
        for x, y in loader:
            x, y = x.to({device}), y.to({device})
            noise = torch.zeros(8, 4, device={device})
            loss = nn.functional.cross_entropy(model(x + noise), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(x.device, noise.device, next(model.parameters()).device)


    if __name__ == "__main__":
        main()
"""
TEXT = '"cuda:0" if not args.cpu else "cpu"'
DEVICE = f"torch.device({TEXT})"
IN_CLASS = """
    class Config:
        def __init__(self, args):
            self.lr = 0.1
            self.device = {chosen}
"""
IN_FUNCTION = """
    def make(args):
        device = {chosen}
        return SimpleNamespace(lr=0.1, device=device)
"""
IN_DICTIONARY = """
    def make(args):
        config = {{"lr": 0.1}}
        config["device"] = {chosen}
        return config
"""
IN_OBJECT = """
    class Settings:
        pass


    def make(args):
        settings = Settings()
        settings.device = {chosen}
        return settings
"""
IN_MODULE = """
    device = None


    def init(args):
        global device
        device = {chosen}
"""
IN_FIELD = """
    @dataclass
    class Config:
        lr: float = 0.1
        device: str = "cuda"
"""
WAYS = {
    "an object that chooses": (IN_CLASS, "config = Config(args)", "config.device"),
    "an object that a function makes": (IN_FUNCTION, "config = make(args)", "config.device"),
    "a dictionary that a function makes": (IN_DICTIONARY, "config = make(args)", 'config["device"]'),
    "an object that a function fills": (IN_OBJECT, "settings = make(args)", "settings.device"),
    "a variable of the module": (IN_MODULE, "init(args)", "device"),
    "a dictionary": ("", 'config = {{"lr": 0.1, "device": {chosen}}}', 'config["device"]'),
    "a field": (IN_FIELD, "config = Config(device={chosen})", "config.device"),
    "an attribute by its name": ("", 'setattr(args, "device", {chosen})', "args.device"),
}


def program(way, chosen, use="pass"):
    above, made, device = WAYS[way]
    filled = {
        "above": above.format(chosen=chosen).strip(),
        "made": made.format(chosen=chosen),
        "device": device,
        "use": use,
    }
    return PROGRAM.format(**filled)


@pytest.mark.parametrize("chosen", [TEXT, DEVICE])
@pytest.mark.parametrize("way", WAYS)
def test_the_flag_is_asked_where_the_device_is_there(convert_text, way, chosen):
    _, converted = convert_text(program(way, chosen))
    _, made, device = WAYS[way]
    if way == "an object that chooses":  # by what it is handed, which is there
        assert "accelerator = Accelerator(cpu=args.cpu)\n" in converted
        return
    asked = f'    accelerator = Accelerator(cpu=torch.device({device}).type == "cpu")\n'
    assert asked in converted
    first = made.partition("(")[0].partition(" =")[0]
    assert converted.index(f"    {first}", converted.index("args = parser")) < converted.index(asked)


@pytest.mark.parametrize("way", WAYS)
def test_what_goes_by_the_machine_alone_asks_nothing(convert_text, way):
    chosen = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    _, converted = convert_text(program(way, chosen))
    assert "accelerator = Accelerator()\n" in converted


@pytest.mark.parametrize("chosen", [TEXT, DEVICE])
@pytest.mark.parametrize("way", WAYS)
def test_no_process_but_the_first_is_sent_to_the_first_gpu(convert_text, way, chosen):
    _, converted = convert_text(program(way, chosen))
    assert "cuda:0" not in converted


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_is_compared_stays(convert_text, way):
    use = f'is_first = {WAYS[way][2]} == "cuda:0"'
    _, converted = convert_text(program(way, TEXT, use))
    assert use in converted
    assert converted.count("cuda:0") == 2


@pytest.mark.parametrize(
    "way", ["a dictionary", "a field", "an object that a function makes", "a variable of the module"]
)
def test_all_is_on_the_gpu_of_the_process_or_on_the_cpu(convert_text, on_pretended_gpu, way):
    _, converted = convert_text(program(way, TEXT))
    assert on_pretended_gpu(converted) == "cuda:1 cuda:1 cuda:1\n"
    assert on_pretended_gpu(converted, "--cpu") == "cpu cpu cpu\n"


def test_a_tensor_on_another_gpu_is_noticed(on_pretended_gpu):
    source = textwrap.dedent(program("a dictionary", '"cuda" if not args.cpu else "cpu"'))
    assert on_pretended_gpu(source) == "cuda:1 cuda:1 cuda:1\n"
    elsewhere = source.replace(
        'noise = torch.zeros(8, 4, device=config["device"])', 'noise = torch.zeros(8, 4, device="cuda:0")'
    )
    assert "expected all tensors to be on the same device, found cuda:0, cuda:1" in on_pretended_gpu(elsewhere)


BUILT = """
    import argparse

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Solver:
        def __init__(self, args):
            self.args = args
            self.build(args.cpu)

        def build(self, cpu):
            config = {"lr": 0.1, "device": CHOSEN}
            self.device = config["device"]
            self.model = nn.Linear(4, 2).to(self.device)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config["lr"])
            self.loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64).long()), batch_size=8)

        def train(self):
            for x, y in self.loader:
                x, y = x.to(self.device), y.to(self.device)
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(x.device, torch.ones(1).to(self.device).device)


    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--cpu", action="store_true")
        torch.manual_seed(0)
        Solver(parser.parse_args()).train()
"""


@pytest.mark.parametrize("chosen", ['"cuda" if not cpu else "cpu"', 'torch.device("cpu" if cpu else "cuda")'])
def test_one_that_is_kept_below_is_asked_in_the_words_above(convert_text, on_pretended_gpu, chosen):
    _, converted = convert_text(BUILT.replace("CHOSEN", chosen))
    assert "self.accelerator = Accelerator(cpu=args.cpu)\n" in converted
    assert on_pretended_gpu(converted) == "cuda:1 cuda:1\n"
    assert on_pretended_gpu(converted, "--cpu") == "cpu cpu\n"
