# === a dataclass
from dataclasses import dataclass
from torch import nn, optim
@dataclass
class Parts:
    net: nn.Module
    opt: optim.Optimizer
    steps: int = 3
net = nn.Linear(1, 1)
parts = Parts(net, opt=optim.SGD(net.parameters(), 1))
m = parts.net  #: model@8
o = parts.opt  #: optimizer@9
n = parts.steps  #: number

# === a dataclass that derives from another
from dataclasses import dataclass
from torch import nn, optim
@dataclass
class Base:
    net: nn.Module
@dataclass(frozen=True)
class Parts(Base):
    opt: object = None
p = Parts(nn.Linear(1, 1), optim.SGD([], 1))
m = p.net  #: model
o = p.opt  #: optimizer

# === a dataclass that finishes itself
from dataclasses import dataclass, field
from torch import nn, optim
@dataclass
class State:
    net: nn.Module
    opt: object = field(init=False)
    def __post_init__(self):
        self.opt = optim.SGD(self.net.parameters(), 1)  #: optimizer
s = State(nn.Linear(1, 1))
o = s.opt  #: optimizer

# === a named tuple class
from typing import NamedTuple
from torch import nn, optim
class Parts(NamedTuple):
    net: nn.Module
    opt: optim.Optimizer
net = nn.Linear(1, 1)
parts = Parts(net, optim.SGD(net.parameters(), 1))
m = parts.net  #: model
a, b = parts  #: a: model, b: optimizer
c = parts[1]  #: optimizer

# === a namedtuple
from collections import namedtuple
from torch import nn, optim
Parts = namedtuple("Parts", ["net", "opt"])
p = Parts(opt=optim.SGD([], 1), net=nn.Linear(1, 1))
m = p.net  #: model
a, b = p  #: a: model, b: optimizer

# === a namedtuple with its fields in a text
from collections import namedtuple
from torch import nn
Parts = namedtuple("Parts", "net, lr")
p = Parts(nn.Linear(1, 1), 0.1)
x = p.net  #: model
y = p.lr  #: number

# === a class that derives from a namedtuple
from collections import namedtuple
from torch import nn
class Parts(namedtuple("Parts", "net lr")):
    def describe(self):
        return self.net  #: model
p = Parts(nn.Linear(1, 1), 0.1)
p.describe()
x, y = p  #: x: model, y: number

# === a batch in a dataclass
from dataclasses import dataclass
import torch
from torch.utils.data import DataLoader
@dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
for x, y in DataLoader(data):
    b = Batch(x, y.to("cuda"))
    u = b.x  #: batch
    v = b.y  #: batch

# === a dataclass with fields that are filled by a mapping
from dataclasses import dataclass
from torch import nn
@dataclass
class Config:
    net: nn.Module
    lr: float
c = Config(**{"net": nn.Linear(1, 1), "lr": 0.1})
x = c.net  #: model
y = c.lr  #: number

# === a named tuple whose fields are not written out
from collections import namedtuple
from torch import nn
Pair = namedtuple("Pair", fields())
pair = Pair(nn.Linear(1, 1), 2)
net = pair[0]  #: nothing

# === a data class with a constant of the class
from dataclasses import dataclass, field
from typing import ClassVar
from torch import nn
@dataclass
class Setup:
    kinds: ClassVar[list] = []
    net: nn.Module
    nets: list = field(default_factory=list, repr=False)
setup = Setup(nn.Linear(1, 1))
print(setup.net)  #: setup.net: model@9

# === a named tuple whose fields stand under a keyword
from collections import namedtuple
from torch import nn
Pair = namedtuple(typename="Pair", field_names="net head")
pair = Pair(nn.Linear(1, 1), nn.Linear(2, 2))
net = pair[0]  #: nothing

# === an attribute of a class that a call with keywords makes
from torch import nn
class Setup:
    net = nn.Linear(in_features=1, out_features=1)
print(Setup.net)  #: Setup.net: model@3

# === a field that the constructor does not take
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar
from torch import nn
@dataclass
class Parts:
    kind: "ClassVar[str]" = "small"
    step: int = field(init=False, default=0)
    net: nn.Module = None
    _: KW_ONLY
    other: nn.Module = None
p = Parts(nn.Linear(1, 1), other=nn.Linear(2, 2))
use(p.net)  #: p.net: model@11
use(p.step)  #: p.step: number

# === the fields of the last base come first
from dataclasses import dataclass
from torch import nn
@dataclass
class Named:
    name: str = ""
@dataclass
class Trained:
    net: nn.Module = None
@dataclass
class Parts(Named, Trained):
    pass
p = Parts(nn.Linear(1, 1), "small")
use(p.net)  #: p.net: model@12
use(p.name)  #: p.name: text
