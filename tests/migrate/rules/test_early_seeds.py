"""Seeds that go by the rank above a trainer that makes the accelerator: the launcher's RANK says it there."""

import pytest

PROGRAM = """
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset
    from torch.utils.data.distributed import DistributedSampler


    def set_seed(seed):
        torch.manual_seed(seed)


    class Trainer:
        def __init__(self):
            data = TensorDataset(torch.ones(16, 2), torch.zeros(16, 1))
            self.loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
            self.model = DistributedDataParallel(nn.Linear(2, 1))
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

        def train(self):
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            print("drawn", dist.get_rank(), torch.rand(1).item(), flush=True)


    def main():
        dist.init_process_group("gloo")
        {seeded}
        trainer = Trainer()
        trainer.train()


    if __name__ == "__main__":
        main()
"""
OWN = 'int(os.environ.get("RANK", "0"))'
SEEDED = {
    "torch.manual_seed(7 + dist.get_rank())": f"torch.manual_seed(7 + {OWN})",
    "set_seed(3 + dist.get_rank())": f"set_seed(3 + {OWN})",
    "seed = 7 + dist.get_rank(); torch.manual_seed(seed); set_seed(seed)": f"seed = 7 + {OWN}",
}


def source(seeded):
    return PROGRAM.format(seeded=seeded.replace("; ", "\n        "))


@pytest.mark.parametrize("seeded", SEEDED)
def test_the_launcher_says_by_which_process_they_go(convert_text, seeded):
    _, result = convert_text(source(seeded))

    assert SEEDED[seeded] in result
    assert "\nimport os\n" in f"\n{result}"


@pytest.mark.parametrize("seeded", ["torch.set_num_threads(1 + dist.get_rank())", "name = ['a', 'b'][dist.get_rank()]"])
def test_what_else_goes_by_the_rank_there_is_refused(refused_text, seeded):
    refused_text(source(seeded), "MIG113", seeded)


def test_what_is_computed_by_it_is_computed_by_what_the_launcher_says(convert_text):
    _, result = convert_text(source("noise = torch.rand(4) * dist.get_rank()"))

    assert 'noise = torch.rand(4) * int(os.environ.get("RANK", "0"))\n' in result
