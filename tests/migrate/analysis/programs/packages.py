# What packages hand on.
# === a package that re-exports
# --- main.py
from nets import Small, build
import nets
a = Small()  #: model
b = build()  #: model@nets/factory.py:3
c = nets.Small()  #: model
# --- nets/__init__.py
from .small import Small
from .factory import *
# --- nets/small.py
from torch import nn
class Small(nn.Module):
    pass
# --- nets/factory.py
from .small import Small
def build():
    return Small()

# === a module and a function of the same name
# --- main.py
from nets import resnet
import nets
net = resnet()  #: model@nets/resnet.py:3
other = nets.resnet()  #: model@nets/resnet.py:3#2
# --- nets/__init__.py
from .resnet import resnet
# --- nets/resnet.py
from torch import nn
def resnet():
    return nn.Linear(1, 1)

# === through two packages
# --- main.py
from lib import make
net = make()  #: model@lib/nets/small.py:3
# --- lib/__init__.py
from .nets import *
# --- lib/nets/__init__.py
from .small import make
__all__ = ["make"]
# --- lib/nets/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a package that makes things
# --- main.py
from setup import net, opt
a = net  #: model@setup/__init__.py:2
b = opt  #: optimizer
# --- setup/__init__.py
from torch import nn, optim
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters())

# === the package is entered when a part of it is imported
# --- main.py
import zoo.registry as r
import torch
net = r.MODELS["small"]()  #: model
# --- zoo/__init__.py
from . import small
# --- zoo/registry.py
MODELS = {}
# --- zoo/small.py
from torch import nn
from .registry import MODELS
class Small(nn.Module):
    pass
MODELS["small"] = Small

# === a submodule that only the package imports
# --- main.py
import lib
import torch
net = lib.nets.make()  #: model
# --- lib/__init__.py
import lib.nets
# --- lib/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a name that another file sets
# --- main.py
import state, setup, torch
setup.run()
net = state.net  #: model@setup.py:4
# --- state.py
net = None
# --- setup.py
import state
from torch import nn
def run():
    state.net = nn.Linear(1, 1)

# === a base class two files away is known before its objects are made
# --- main.py
from nets import Net
net = Net()  #: model
# --- nets.py
from middle import Middle
class Net(Middle):
    pass
# --- middle.py
from base import Base
class Middle(Base):
    pass
# --- base.py
from torch import nn
class Base(nn.Module):
    pass
