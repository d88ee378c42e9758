"""A converted training function on Ray Train: `python docs/launch/ray_train.py` (pip install "ray[train]").

Ray starts the workers, joins them and says who is who; `Accelerator` takes what it finds. So nothing is launched here,
and `runtime launch` is not needed.
"""

from __future__ import annotations

from typing import Any


def train(settings: dict[str, Any]) -> None:
    """What every worker runs: any function that a converted script would call as its main()."""
    import torch
    from torch import nn

    from runtime import Accelerator

    torch.manual_seed(0)
    accelerator = Accelerator(cpu=not settings["use_gpu"], split_batches=True)
    data = torch.utils.data.TensorDataset(torch.ones(64, 8), torch.ones(64, 1))
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["lr"])
    model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=16))
    loss = torch.zeros(())
    for _ in range(settings["epochs"]):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    mean = accelerator.reduce(loss.detach(), "mean").item()
    accelerator.print(f"loss {mean:.4f} on {accelerator.num_processes} workers")
    report(mean, accelerator.num_processes)


def report(loss: float, workers: int) -> None:
    """All workers come here, as Ray asks for."""
    from ray import train as ray_train

    ray_train.report({"loss": loss, "workers": workers})


def main(workers: int = 2, use_gpu: bool = False) -> None:
    """Start the workers, and wait for them."""
    from ray.train import ScalingConfig
    from ray.train.torch import TorchTrainer

    trainer = TorchTrainer(
        train,
        train_loop_config={"lr": 0.1, "epochs": 3, "use_gpu": use_gpu},
        scaling_config=ScalingConfig(num_workers=workers, use_gpu=use_gpu),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
