# Functions at which a program starts: a library calls them.

# === hydra
import hydra
from torch import nn
@hydra.main(config_path="conf", config_name="train", version_base=None)
def main(cfg):  #: cfg: holder@3
    net = nn.Linear(cfg.n, 1)  #: net: model
    return net
if __name__ == "__main__":
    main()

# === hydra trains
import hydra
from torch import nn, optim
from torch.utils.data import DataLoader
@hydra.main()
def main(cfg: DictConfig) -> None:
    net = nn.Linear(1, 1)
    opt = optim.SGD(net.parameters(), cfg.lr)
    for x in DataLoader(read(cfg.data)):  #: training by optimizer@7 over dataloader@8
        net(x).sum().backward()
        opt.step()
main()

# === pyrallis
import pyrallis
from torch import nn
@pyrallis.wrap()
def main(config: TrainConfig):  #: config: holder@3
    net = nn.Linear(config.n, 1)  #: net: model
main()

# === click
import click
from torch import nn
@click.command()
@click.option("--lr", default=0.1)
def main(lr, wide=3):  #: lr: bound method@3, wide: number
    net = nn.Linear(wide, 1)  #: model
main()

# === a group of commands
import click
from torch import nn
@click.group
def cli():
    pass
@cli.command()
def train(lr):  #: lr: nothing
    net = nn.Linear(1, 1).cuda()  #: model
cli()

# === typer
import typer
from torch import nn
app = typer.Typer()
@app.command()
def train(lr: float = 0.1):  #: lr: number
    net = nn.Linear(1, 1).cuda()  #: model
app()

# === typer in one line
import typer
from torch import nn
def train(lr: float = 0.1):  #: lr: number
    return nn.Linear(1, 1)
typer.run(train)

# === fire, also with several commands
import fire
from torch import nn
def train(lr=0.1):  #: lr: number
    net = nn.Linear(1, 1).cuda()  #: model
def test():
    net = nn.Linear(1, 1).cuda()  #: model
fire.Fire({"train": train, "test": test})

# === absl
from absl import app, flags
from torch import nn
def main(argv):  #: argv: nothing
    net = nn.Linear(1, 1)  #: model
app.run(main)
