# Classes of the project that derive from each other.
# === a base that asks its subclass for the model
from torch import nn
class Base:
    def __init__(self):
        self.net = self.build()  #: model@9
    def build(self):
        raise NotImplementedError
class Run(Base):
    def build(self):
        return nn.Linear(1, 1)
x = Run().net  #: model@9

# === two subclasses of one base
from torch import nn
class Base:
    def __init__(self):
        self.net = self.build()
    def build(self):
        raise NotImplementedError
class Small(Base):
    def build(self):
        return nn.Linear(1, 1)
class Large(Base):
    def build(self):
        return nn.Linear(9, 9)
x = Small().build()  #: model@9#2
y = Large().build()  #: model@12

# === super at three levels
from torch import nn, optim
class A:
    def __init__(self, width):
        self.net = self.make(width)  #: model@9
    def make(self, width):
        return None
class B(A):
    def make(self, width):
        return nn.Linear(width, 1)
class C(B):
    def __init__(self, width):
        super().__init__(width)
        self.opt = optim.SGD(self.net.parameters())  #: optimizer
class D(C):
    def __init__(self):
        super(D, self).__init__(3)
        o = self.opt  #: optimizer
d = D()
x = d.net  #: model@9

# === a base that is called by its name
from torch import nn
class A:
    def __init__(self):
        self.net = nn.Linear(1, 1)
class B(A):
    def __init__(self):
        A.__init__(self)
x = B().net  #: model

# === super finds what the base gives, and the override extends it
from torch import nn
class A:
    def make(self):
        return nn.Linear(1, 1)
class B(A):
    def make(self):
        return nn.Sequential(super().make())
x = B().make()  #: model@7
y = A().make()  #: model@4#2

# === mixins from left to right
from torch import nn
class Left:
    def make(self):
        return nn.Linear(1, 1)
class Right:
    def make(self):
        return nn.CrossEntropyLoss()
class Both(Left, Right):
    pass
x = Both().make()  #: model

# === super in a mixin goes on to the next base of the object
from torch import nn
class Base:
    def make(self):
        return nn.Linear(1, 1)
class Mixin:
    def make(self):
        return super().make()  #: model
class Run(Mixin, Base):
    pass
x = Run().make()  #: model@4

# === a diamond
from torch import nn
class Top:
    def make(self):
        return None
class Left(Top):
    pass
class Right(Top):
    def make(self):
        return nn.Linear(1, 1)
class Bottom(Left, Right):
    pass
x = Bottom().make()  #: model

# === a mixin that uses what it does not define
from torch import nn, optim
class Optimizing:
    def setup(self):
        self.opt = optim.SGD(self.net.parameters())
class Run(Optimizing):
    def __init__(self):
        self.net = nn.Linear(1, 1)
        self.setup()
        o = self.opt  #: optimizer
Run()

# === a property
from torch import nn
class Run:
    def __init__(self):
        self._net = nn.Linear(1, 1)
    @property
    def net(self):
        return self._net
x = Run().net  #: model

# === a property that is set
from torch import nn
class Run:
    @property
    def net(self):
        return self._net
    @net.setter
    def net(self, value):
        self._net = value.to("cuda")  #: model
run = Run()
run.net = nn.Linear(1, 1)
x = run.net  #: model

# === a cached property
from functools import cached_property
import functools
from torch import nn, optim
class Run:
    @cached_property
    def net(self):
        return nn.Linear(1, 1)
    @functools.cached_property
    def opt(self):
        return optim.SGD(self.net.parameters())
x = Run().net  #: model
y = Run().opt  #: optimizer

# === an abstract property
from abc import ABC, abstractmethod
from torch import nn
class Base(ABC):
    @property
    @abstractmethod
    def net(self): ...
    def fit(self):
        m = self.net  #: model
class Run(Base):
    @property
    def net(self):
        return nn.Linear(1, 1)
Run().fit()

# === attributes of the class
from torch import nn
class Run:
    net = nn.Linear(1, 1)
    width, crit = 3, nn.MSELoss()
    if width:
        other = nn.Bilinear(1, 1, 1)
    def fit(self):
        m = self.net  #: model
        c = Run.crit  #: loss function
        o = self.other  #: model
Run().fit()

# === a class that sets its own attributes
from torch import nn
class Run:
    net = None
    @classmethod
    def setup(cls):
        cls.net = nn.Linear(1, 1)
Run.setup()
x = Run.net  #: model
y = Run().net  #: model

# === factories of a class
from torch import nn
class Net(nn.Module):
    def __init__(self, width):
        self.width = width
    @classmethod
    def small(cls, width):
        return cls(width)  #: model; width: number
    @staticmethod
    def make(width):
        return Net(width)  #: model; width: number
class Deep(Net):
    pass
a = Net.small(3)  #: model
b = Net.make(3)  #: model
c = a.make(3)  #: model
d = a.small(3)  #: model
e = Deep.small(3)  #: model

# === another of the same class
from torch import nn
class Net(nn.Module):
    def again(self):
        return type(self)()  #: model@4
    def more(self):
        return self.__class__()  #: model@6
a = Net().again()  #: model@4
b = Net().more()  #: model@6

# === a dataclass
from dataclasses import dataclass, field
from torch import nn, optim
@dataclass
class Run:
    net: nn.Module
    opt: optim.Optimizer = None
    device: str = "cpu"
    log: list = field(default_factory=list)
a = Run(nn.Linear(1, 1), opt=optim.SGD(found))
x = a.net  #: model
y = a.opt  #: optimizer
z = a.device  #: text(cpu)

# === a dataclass that sets itself up, and one that derives from it
from dataclasses import dataclass
from torch import nn, optim
@dataclass(frozen=True)
class Base:
    net: nn.Module
    def __post_init__(self):
        self.opt = optim.SGD(self.net.parameters())  #: optimizer
@dataclass
class Run(Base):
    crit: nn.Module = None
a = Run(nn.Linear(1, 1), nn.MSELoss())
x = a.opt  #: optimizer
y = a.crit  #: loss function

# === a named tuple
from typing import NamedTuple
from torch import nn, optim
class Parts(NamedTuple):
    net: nn.Module
    opt: optim.Optimizer
def build():
    net = nn.Linear(1, 1)
    return Parts(net, optim.SGD(net.parameters()))
a = build().net  #: model
n, o = build()  #: n: model; o: optimizer

# === objects that are called
from torch import nn
class Make:
    def __call__(self, width):
        return nn.Linear(width, 1)  #: model
make = Make()
x = make(3)  #: model

# === a model that holds its optimizer
from torch import nn, optim
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.opt = optim.SGD(self.parameters())  #: optimizer
net = Net()
x = net.opt  #: optimizer
y = net.layer  #: model

# === what a model holds is what it is, though it is read before it is set
from torch import nn, optim
class Net(nn.Module):
    def configure(self):
        self.opt = optim.SGD(self.parameters())
def use(net):
    return net.opt  #: optimizer
def main():
    net = Net()
    net.configure()
    x = use(net)  #: optimizer
main()

# === a class in a function, and one in a class
from torch import nn
def build():
    class Net(nn.Module):
        pass
    return Net()
class Outer:
    class Net(nn.Module):
        pass
x = build()  #: model
y = Outer.Net()  #: model

# === a class under a condition
import torch
from torch import nn
if torch.cuda.is_available():
    class Net(nn.Module):
        pass
else:
    class Net(nn.Linear):
        pass
net = Net()  #: model

# === a class with keywords, and a base that hears of it
from torch import nn
KINDS = {}
class Base:
    def __init_subclass__(cls, **settings):
        KINDS["net"] = cls
class Net(Base, nn.Module, kind=nn.Linear):
    pass
net = KINDS["net"]()  #: model@8

# === a setter of a property
from torch import nn
class Trainer:
    @property
    def net(self):
        return self._net
    @net.setter
    def net(self, value):  #: value: model@9
        self._net = value
trainer = Trainer(); trainer.net = nn.Linear(1, 1)
print(trainer.net)  #: trainer.net: model@9

# === super() in a function inside of a method
from torch import nn
class Base:
    def build(self):
        return nn.Linear(1, 1)
class Trainer(Base):
    def build(self):
        def inner():
            return super(Trainer, self).build()
        return inner()  #: model@4
Trainer().build()

# === a class that a library makes ready
from transformers import PreTrainedModel
class Net(PreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
net = Net.from_pretrained("base")  #: model@5

# === a class of which a base is made by a call
from torch import nn
def base():
    return nn.Module
class Net(base()):
    pass
net = Net()  #: model@6

# === the names of an object as a dictionary
from torch import nn
class Holder:
    def __init__(self):
        self.net = nn.Linear(1, 1)
nets = Holder().__dict__
net = nets["net"]  #: model@4

# === a class of a library that is no model is made ready
from transformers import PretrainedConfig
class Config(PretrainedConfig):
    pass
config = Config.from_pretrained("base")  #: unknown object

# === a method of the library's class by super()
from torch import nn
class Net(nn.Module):
    def warm(self):
        return super().eval()
net = Net().warm()  #: model@5
