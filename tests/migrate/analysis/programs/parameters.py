# === by position and by keyword
from torch import nn, optim
def train(model, opt):  #: model: model@4, opt: optimizer@5
    return model
net = nn.Linear(1, 1)
train(net, opt=optim.SGD(net.parameters(), 1))

# === defaults
from torch import nn
def build(act=nn.ReLU(), width=3):  #: act: model, width: number
    return act
build()

# === a default that is overridden by one caller
import torch
def place(x, device="cpu"):  #: device: text, device
    return x
place(1)
place(2, torch.device("cuda"))

# === keyword-only
from torch import nn
def build(*, net, n=1):  #: net: model, n: number
    return net
build(net=nn.Linear(1, 1))

# === positional-only
from torch import nn
def build(net, /, n):  #: net: model, n: number
    return net
build(nn.Linear(1, 1), n=2)

# === more arguments than parameters
from torch import nn, optim
def pair(*things):
    net, opt = things  #: net: model, opt: optimizer
    first = things[0]  #: model
    return net
net = nn.Linear(1, 1)
pair(net, optim.SGD(net.parameters(), 1))

# === keywords that are collected
from torch import nn
def build(**options):
    return options["net"]  #: model
build(net=nn.Linear(1, 1), lr=0.1)

# === passed through
from torch import nn, optim
def inner(net, opt, lr):  #: net: model, opt: optimizer, lr: number
    return net
def outer(*args, **kwargs):
    return inner(*args, **kwargs)  #: model
net = nn.Linear(1, 1)
outer(net, optim.SGD(net.parameters(), 1), lr=0.1)

# === a tuple as arguments
from torch import nn, optim
def train(net, opt):  #: net: model, opt: optimizer
    return net
net = nn.Linear(1, 1)
parts = (net, optim.SGD(net.parameters(), 1))
train(*parts)

# === a dictionary as arguments
from torch import nn, optim
def train(net, opt, lr=0.1):  #: net: model, opt: optimizer, lr: number
    return net
net = nn.Linear(1, 1)
parts = {"opt": optim.SGD(net.parameters(), 1), "net": net}
train(**parts)

# === a list of unknown length as arguments
from torch import nn
def use(a, b):  #: a: model, b: model
    return a
nets = []
for n in sizes:
    nets.append(nn.Linear(n, n))
use(*nets)

# === a partial function gets both
from functools import partial
from torch import nn, optim
def train(net, opt, x):  #: net: model, opt: optimizer, x: number
    return net
net = nn.Linear(1, 1)
step = partial(train, net, opt=optim.SGD(net.parameters(), 1))
m = step(x=3)  #: model

# === a partial constructor
from functools import partial
from torch import nn, optim
make = partial(optim.SGD, lr=0.1)
opt = make(nn.Linear(1, 1).parameters())  #: optimizer@4

# === a partial function of a partial function
from functools import partial
from torch import nn
def f(a, b, c):  #: a: model, b: number, c: text
    return a
g = partial(f, nn.Linear(1, 1))
h = partial(g, 1)
m = h("x")  #: model

# === an optimizer from a partial one trains what it is given
import functools
from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
opt = functools.partial(optim.SGD, lr=1)(net.parameters())  #: optimizer
for x in DataLoader(data):  #: training by optimizer@5 over dataloader@6
    net(x).mean().backward()
    opt.step()

# === a lambda
from torch import nn
make = lambda n: nn.Linear(n, n)
net = make(3)  #: model@2

# === a lambda with a default
from torch import nn
net = nn.Linear(1, 1)
f = lambda x, net=net: net
m = f(1)  #: model@2

# === a lambda in a table
from torch import nn
table = {"small": lambda: nn.Linear(1, 1), "big": lambda: nn.Linear(9, 9)}
net = table[name]()  #: model

# === a function as an argument
from torch import nn
def apply(f, n):
    return f(n)  #: model
def make(n):
    return nn.Linear(n, n)
net = apply(make, 3)  #: model@5

# === recursion
from torch import nn
def build(n):
    if n == 0:
        return nn.Linear(1, 1)
    return build(n - 1)  #: model@4
net = build(3)  #: model@4

# === functions that call each other
import torch
from torch import nn
def even(n):
    return odd(n - 1)
def odd(n):
    return nn.Linear(1, 1) if n < 0 else even(n)
net = even(3)  #: model

# === a default that is none is filled inside
from torch import nn
from torch.utils.data import DataLoader
def evaluate(net, loader=None):
    if loader is None:
        loader = DataLoader(data)
    for x in loader:  #: evaluation over dataloader@5
        net(x)
evaluate(nn.Linear(1, 1))

# === more arguments after a tuple
from torch import nn, optim
def train(net, lr, opt):  #: net: model, lr: number, opt: optimizer
    return net
first = (nn.Linear(1, 1), 0.1)
train(*first, optim.SGD([], 1))

# === what stands behind an unknown number of arguments stands anywhere
from torch import nn
def use(a, b):  #: a: nothing, b: nothing
    return a
use(*unheard_of, nn.Linear(1, 1))

# === a tuple with an unknown part keeps the places of the others
from torch import nn, optim
def use(a, b, c):  #: a: model, b: nothing, c: optimizer
    return a
use(*(nn.Linear(1, 1), unheard_of), optim.SGD([], 1))

# === two lists of arguments
from torch import nn, optim
def use(a, b):  #: a: model, optimizer, b: model, optimizer
    return a
nets, opts = [], []
nets.append(nn.Linear(1, 1))
opts.append(optim.SGD([], 1))
use(*nets, *opts)

# === a method takes its object first
from torch import nn
class Trainer:
    def fit(self, net, *more, **options):  #: self: instance, net: model, more: container, options: container
        return more[0]  #: number
Trainer().fit(nn.Linear(1, 1), 3, flag=True)

# === arguments through two functions
from torch import nn, optim
def inner(net, **options):
    return options["opt"]  #: optimizer
def outer(**options):
    return inner(**options)
net = nn.Linear(1, 1)
outer(net=net, opt=optim.SGD(net.parameters(), 1))

# === groups of a model's parameters that a library makes
import timm.optim.optim_factory as optim_factory
from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
groups = optim_factory.add_weight_decay(net, 0.05)  #: parameters@4
opt = optim.AdamW(groups, lr=0.1)
for x, y in DataLoader([]):  #: training by optimizer@6
    net(x).sum().backward()
    opt.step()
