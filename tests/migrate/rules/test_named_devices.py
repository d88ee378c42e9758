"""A device that the command line names, which a model keeps for itself: it is that of the process."""

import textwrap

import pytest

PROGRAM = """
    import argparse

    import torch
    from torch import nn

    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="{device}", type=str)
    args = parser.parse_args()


    class Net(nn.Module):
        def __init__(self, args):
            super().__init__()
            {keeps}
            self.fc = nn.Linear(4, 1)

        def forward(self, rows):
            return self.fc(torch.FloatTensor(rows){moved})


    def main():
        torch.manual_seed(0)
        model = Net(args).to(args.device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            rows = [[float(step + k + j) for k in range(4)] for j in range(4)]
            loss = model(rows).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(next(model.parameters()).device)


    main()
"""
LINE = "args.device = accelerator.device.type"
KEEPS = {
    "in an attribute": {"keeps": "self.device = args.device", "moved": ".to(self.device)"},
    "with the settings": {"keeps": "self.args = args", "moved": ".to(self.args.device)"},
}


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:1"])
@pytest.mark.parametrize("keeps", KEEPS)
def test_a_model_puts_its_rows_on_the_gpu_of_the_process(convert_text, on_pretended_gpu, keeps, device):
    _, text = convert_text(PROGRAM.format(device=device, **KEEPS[keeps]))
    assert LINE in text
    assert on_pretended_gpu(text) == "cuda:1\n"


def test_the_cpu_stays_the_cpu(convert_text, on_pretended_gpu):
    _, text = convert_text(PROGRAM.format(device="cuda:1", **KEEPS["in an attribute"]))
    assert on_pretended_gpu(text, "--device", "cpu") == "cpu\n"


def test_a_setting_that_no_model_reads_stays(convert_text, on_pretended_gpu):
    _, text = convert_text(PROGRAM.format(device="cuda:0", keeps="self.n = 1", moved=".to(self.fc.weight.device)"))
    assert "args.device =" not in text
    assert on_pretended_gpu(text) == "cuda:1\n"


FLAG = """
    import argparse

    import torch
    from torch import nn

    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", type=int, default=None)
    parser.add_argument("--cuda", type=str, default=True)
    args = parser.parse_args()
    args.cuda = args.gpu is not None


    class Net(nn.Module):
        def __init__(self, args):
            super().__init__()
            self.use_cuda = args.cuda
            self.fc = nn.Linear(4, 1)

        def forward(self, rows):
            return self.fc(rows) if self.use_cuda else self.fc(rows) * 2


    torch.manual_seed(0)
    model = Net(args)
    if args.cuda:
        model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        rows = torch.ones(4, 4) * step
        if args.cuda:
            rows = rows.cuda()
        loss = model(rows).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def test_a_flag_names_no_device(convert_text, numbers_printed):
    _, text = convert_text(FLAG)

    assert "Accelerator(cpu=not args.cuda" in text
    assert "args.cuda = accelerator" not in text
    assert numbers_printed(text, 1) == numbers_printed(textwrap.dedent(FLAG), 1)


WORD = """
    import argparse

    import torch
    from torch import nn

    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", default="{default}", help="cpu/gpu")
    args = parser.parse_args()


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 1)

        def together(self, rows):
            x = torch.stack(rows)
            if args.mode == "{word}":
                x = x.cuda()
            return x

        def forward(self, rows):
            return self.fc(self.together(rows))


    if __name__ == "__main__":
        torch.manual_seed(0)
        model = Net()
        if args.mode == "{word}":
            model = model.cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            loss = model([torch.ones(4) * step, torch.ones(4)]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(next(model.parameters()).device)
"""


@pytest.mark.parametrize("default", ["gpu", "cpu"])
def test_a_word_of_the_programs_own_stays(convert_text, on_pretended_gpu, default):
    _, text = convert_text(WORD.format(default=default, word="gpu"))

    assert 'Accelerator(cpu=args.mode != "gpu")' in text
    assert "args.mode = " not in text
    assert on_pretended_gpu(text) == ("cuda:1\n" if default == "gpu" else "cpu\n")


def test_a_word_that_names_the_device_is_the_devices(convert_text, on_pretended_gpu):
    _, text = convert_text(WORD.format(default="cuda", word="cuda"))

    assert "args.mode = accelerator.device.type" in text
    assert on_pretended_gpu(text) == "cuda:1\n"
