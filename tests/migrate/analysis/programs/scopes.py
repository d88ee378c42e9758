# === a global that a function reads
from torch import nn
net = nn.Linear(1, 1)
def train():
    return net  #: model@2
train()

# === a global that a function sets
from torch import nn
net = None
def setup():
    global net
    net = nn.Linear(1, 1)
setup()
net.train()  #: net: model@5

# === a global that a function replaces may be either
from torch import nn, optim
thing = nn.Linear(1, 1)
def replace():
    global thing
    thing = optim.SGD([], 1)
replace()
use(thing)  #: thing: model, optimizer

# === nonlocal
from torch import nn
def main():
    net = None
    def setup():
        nonlocal net
        net = nn.Linear(1, 1)
    setup()
    return net  #: model@6
main()

# === nonlocal may replace what was there
from torch import nn, optim
def main():
    thing = nn.Linear(1, 1)
    def replace():
        nonlocal thing
        thing = optim.SGD([], 1)
    replace()
    return thing  #: model, optimizer
main()

# === a closure
from torch import nn
def main():
    net = nn.Linear(1, 1)
    def step():
        return net  #: model@3
    step()
main()

# === a closure sees what is bound after it
from torch import nn
def main():
    def step():
        return net  #: model@5
    net = nn.Linear(1, 1)
    step()
main()

# === two levels of closures
from torch import nn
def main():
    net = nn.Linear(1, 1)
    def outer():
        def inner():
            return net  #: model@3
        return inner()
    outer()
main()

# === a function that makes functions
from torch import nn
def make(net):
    def step(x):
        return net  #: model@6
    return step
step = make(nn.Linear(1, 1))
step(1)

# === a local name hides a global
from torch import nn
model = nn.Linear(1, 1)
def use():
    model = {}
    return model  #: container
use()

# === a parameter hides a global
from torch import nn
model = nn.Linear(1, 1)
def use(model):
    return model  #: text(resnet)
use("resnet")

# === a local name of one function is not seen by another
from torch import nn
def one():
    net = nn.Linear(1, 1)
def two():
    return net  #: nothing
one()
two()

# === a name of a class is not seen by its methods
from torch import nn
class Trainer:
    net = nn.Linear(1, 1)
    def fit(self):
        a = self.net  #: model
        return net  #: nothing
Trainer().fit()

# === the variable of a comprehension stays inside
from torch import nn
x = nn.Linear(1, 1)
names = [x for x in ("a", "b")]
x.train()  #: x: model

# === a global of the module and a local of the same name in an enclosing function
from torch import nn, optim
thing = nn.Linear(1, 1)
def main():
    thing = optim.SGD([], 1)
    def inner():
        global thing
        return thing  #: model
    inner()
main()

# === globals as a dictionary
from torch import nn
class Net(nn.Module):
    pass
net = globals()["Net"]()  #: model
other = globals()[name]()  #: unknown object

# === exec of a name that is not known
import torch
net = eval(name)()  #: unknown object

# === a counter in a closure
from torch.utils.data import DataLoader
def main():
    seen = 0
    def count(x):
        nonlocal seen
        seen += x.size(0)
    for x, y in DataLoader(data):
        count(x)
    return seen  #: number, statistic
main()

# === nonlocal over two levels
from torch import nn
def main():
    net = None
    def outer():
        def setup():
            nonlocal net
            net = nn.Linear(1, 1)
        setup()
    outer()
    return net  #: model@7
main()

# === a name of the module that is set as an item of globals()
from torch import nn
globals()["net"] = nn.Linear(1, 1)
def train():
    return net  #: model@2
train()
for name in ("one", "two"):
    globals()[name] = nn.Linear(1, 1)

# === a name of the module that nobody can read
from torch import nn
globals()[key()] = nn.Linear(1, 1)
print(net)  #: net: nothing

# === eval of what is no name
from torch import nn
nets = [nn.Linear(1, 1)]
net = eval("nets[0]")  #: unknown object

# === eval of some name of a module
# --- train.py
import nets, sys
net = eval("nets." + sys.argv[1])  #: function
# --- nets.py
from torch import nn
def small():
    return nn.Linear(1, 1)

# === eval of a text with holes
import sys
from torch import nn, optim
net = nn.Linear(1, 1)
one = eval("optim.{}".format(sys.argv[1]))(net.parameters())  #: optimizer
other = eval("optim.{name}".format(name=sys.argv[1]))(net.parameters())  #: optimizer

# === a global that a loop, an import, a match or an assignment expression gives
import torch.nn.functional as made
from torch import nn
first = second = third = nn.Linear(1, 1)
def give():
    global first, second, third, made
    for first in [nn.Linear(2, 2)]:
        print(first)
    if (second := nn.Linear(3, 3)):
        print(second)
    match nn.Linear(4, 4):
        case third:
            print(third)
    from torch import nn as made
give()
use(first)  #: first: model@3, model@6
use(second)  #: second: model@3, model@8
def later():
    use(third)  #: third: model@3, model@10
    return made.Linear(1, 1)
later()  #: later(): model, tensor

# === eval of a name in some module of a package
# --- train.py
import nets, sys
net = eval("nets." + sys.argv[1] + ".get_net")(1)  #: model@nets/small.py:3, model@nets/large.py:3
other = eval(f"nets.{sys.argv[1]}.Net")()  #: model
none = eval("nets." + sys.argv[1] + ".get_others")(1)  #: unknown object
# --- nets/__init__.py
import nets.small
import nets.large
# --- nets/small.py
from torch import nn
def get_net(size):
    return nn.Linear(size, 1)
class Net(nn.Module):
    pass
# --- nets/large.py
from torch import nn
def get_net(size):
    return nn.Linear(size, 2)
# --- nets/unused.py
from torch import nn
def get_net(size):
    return nn.Linear(size, 3)
def get_others(size):
    return nn.Linear(size, 3)

# === eval of some module that a file imports
# --- train.py
import sys
from nets import small
net = eval(sys.argv[1]).Net()  #: model
other = eval(sys.argv[1]).Other()  #: unknown object
size = eval(sys.argv[1])  #: unknown object
# --- nets/__init__.py
# --- nets/small.py
from torch import nn
class Net(nn.Module):
    pass
