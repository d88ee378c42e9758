# Names that come from other files of the project.
# === from a module beside the script
# --- main.py
from nets import make
net = make()  #: model@nets.py:3
# --- nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a module under another name
# --- main.py
import nets as n
from nets import make as build
net = n.make()  #: model@nets.py:3
other = build()  #: model@nets.py:3#2
# --- nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a dotted import binds the package
# --- main.py
import pkg.sub.nets
import torch.nn
net = pkg.sub.nets.make()  #: model@pkg/sub/nets.py:3
x = torch.nn.Linear(1, 1)  #: model
# --- pkg/__init__.py
# --- pkg/sub/__init__.py
# --- pkg/sub/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a dotted import under a name of its own
# --- main.py
import pkg.nets as n
net = n.make()  #: model@pkg/nets.py:3
# --- pkg/__init__.py
# --- pkg/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === everything public
# --- main.py
from nets import *
net = make()  #: model
other = _make()  #: unknown object
word = PATH  #: text(a)
# --- nets.py
from torch import nn
PATH = "a"
def make():
    return nn.Linear(1, 1)
_make = make

# === a part of a package that is called like a library
# --- main.py
from pkg import *
net = torch.nn.Linear(1, 1)  #: model
other = make()  #: model@pkg/nets.py:3
# --- pkg/__init__.py
from pkg.torch import *
from pkg.nets import *
# --- pkg/torch.py
import torch
ones = torch.ones
# --- pkg/nets.py
import torch
def make():
    return torch.nn.Linear(1, 1)

# === not what a file binds when it is the script itself
# --- main.py
from nets import *
from nets import size
lr = size  #: text(b)
other = net  #: nothing
both = scale  #: text(c)
# --- nets.py
from torch import nn
size = "b"
if __name__ == "__main__":
    net = nn.Linear(1, 1)
    scale = "c"
else:
    scale = "c"

# === everything that is listed
# --- main.py
from nets import *
net = _make()  #: model
other = hidden()  #: unknown object
# --- nets.py
from torch import nn
__all__ = ["make"]
__all__ += ["_make"]
def make():
    return nn.Linear(1, 1)
_make = make
hidden = make

# === everything of a library
# --- main.py
from torch.nn import *
from helpers import name
net = Linear(1, 1)  #: model
crit = CrossEntropyLoss()  #: loss function
x = name  #: text(a)
y = print  #: library name(builtins.print)
# --- helpers.py
name = "a"

# === everything of two libraries: only what a table has
# --- main.py
from torch.nn import *
from tkinter import *
crit = CrossEntropyLoss()  #: loss function
other = Frame(1, 1)  #: unknown object

# === relative imports of every level
# --- main.py
from pkg.deep.nets import build
net = build()  #: model@pkg/base.py:3#3
# --- pkg/__init__.py
# --- pkg/base.py
from torch import nn
def make():
    return nn.Linear(1, 1)
# --- pkg/deep/__init__.py
# --- pkg/deep/here.py
from ..base import make
# --- pkg/deep/nets.py
from . import here
from .here import make
from .. import base
def build():
    x = here.make()  #: model@pkg/base.py:3
    y = base.make()  #: model@pkg/base.py:3#2
    return make()

# === a relative import is never a library
# --- main.py
import pkg.run
# --- pkg/__init__.py
# --- pkg/run.py
from .torch import nn
net = nn.Linear(1, 1)  #: unknown object

# === in a function
# --- main.py
def setup():
    from nets import make
    return make()
net = setup()  #: model@nets.py:3
# --- nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === the project's own where a library is missing
# --- main.py
import torch
try:
    from fastnets import make
except ImportError:
    from nets import make
net = make()  #: model@nets.py:3, unknown object
# --- nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a module that shadows a library
# --- main.py
import torch
from transformers import AutoModel
import datasets
net = AutoModel()  #: instance
x = datasets.load_dataset("a")  #: dataloader
# --- transformers.py
class AutoModel:
    pass
# --- datasets.py
from torch.utils.data import DataLoader
def load_dataset(name):
    return DataLoader(name)

# === two files that import each other
# --- main.py
import a
net = a.build()  #: model@b.py:4
# --- a.py
import b
width = 3
def build():
    return b.make()
# --- b.py
import a
from torch import nn
def make():
    return nn.Linear(a.width, 1)

# === a cycle with names that are there only later
# --- main.py
from a import run
net = run()  #: model@b.py:4
# --- a.py
from torch import nn
from b import make
class Base(nn.Module):
    pass
def run():
    return make()
# --- b.py
import a
class Net(a.Base): pass
def make():
    return Net()

# === under the main guard
# --- main.py
from nets import make
def main():
    net = make()  #: model@nets.py:3
if __name__ == "__main__":
    main()
# --- nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a folder without __init__
# --- main.py
import torch
from models.small import make
from models import small
import models.small
a = make()  #: model
b = small.make()  #: model
c = models.small.make()  #: model
# --- models/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === two folders without __init__, one in the other
# --- main.py
import torch
import code.nets.small as s
from project.nets import small
net = small.make()  #: model
# --- project/nets/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === an imported file looks where the script looks
# --- main.py
from models.net import make
net = make()  #: model@settings.py:3
# --- settings.py
from torch import nn
def build():
    return nn.Linear(1, 1)
# --- models/net.py
from settings import build
def make():
    return build()
# --- models/settings.py
def build():
    return None

# === one file under two names is one module
# --- main.py
import sys
sys.path.append("lib")
import lib.state
import state
from torch import nn
lib.state.net = nn.Linear(1, 1)
x = state.net  #: model
# --- lib/__init__.py
# --- lib/state.py
net = None

# === the source folder
# --- train.py
from lib.nets import make
net = make()  #: model@src/lib/nets.py:3
# --- src/lib/__init__.py
# --- src/lib/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a folder that is added to the path by its name
# --- run/train.py
import sys
sys.path.insert(0, "../shared")
from nets import make
net = make()  #: model@shared/nets.py:3
# --- shared/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a folder that is added to the path by the place of the file
# --- run/a/train.py
import os, sys
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "shared"))
from nets import make
net = make()  #: model@run/shared/nets.py:4
# --- run/shared/nets.py
from torch import nn
from other import width
def make():
    return nn.Linear(width, 1)
# --- run/shared/other.py
width = 3  #: number

# === a folder that is added to the path with pathlib
# --- run/a/train.py
import sys
from pathlib import Path
sys.path += [str(Path(__file__).resolve().parents[1] / "shared")]
from nets import make
net = make()  #: model@run/shared/nets.py:3
# --- run/shared/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a folder that a module beside the script adds to the path when it is imported
# --- run/train.py
import _paths
from nets import make
net = make()  #: model@shared/nets.py:3
# --- run/_paths.py
import os.path as osp
import sys
def add_path(path):
    if path not in sys.path:
        sys.path.insert(0, path)
here = osp.dirname(__file__)
shared = osp.join(here, "..", "shared")
add_path(shared)
# --- shared/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a folder that another function of that kind is given
# --- run/train.py
import _paths
from nets import make
net = make()  #: unknown object
# --- run/_paths.py
import sys
def add_path(path, name):
    sys.path.insert(0, name)
def told(path):
    print(path)
told("../shared")
# --- shared/nets.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a module by its name
# --- main.py
import importlib, torch
nets = importlib.import_module("models.small")
net = nets.make()  #: model@models/small.py:3
optim = importlib.import_module("torch.optim")
opt = optim.SGD(net.parameters())  #: optimizer
# --- models/__init__.py
# --- models/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a module by a name that is not known
# --- main.py
import argparse, torch
from importlib import import_module
args = argparse.ArgumentParser().parse_args()
nets = import_module("models." + args.model)
net = nets.make()  #: model@models/large.py:3, model@models/small.py:3
again = getattr(import_module(f"models.{args.model}"), "make")()  #: model
# --- models/__init__.py
# --- models/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)
# --- models/large.py
from torch import nn
def make():
    return nn.Linear(9, 9)

# === a package by a name that is not known, among modules; a folder without a file of its own holds no names
# --- main.py
import argparse
from importlib import import_module
args = argparse.ArgumentParser().parse_args()
nets = import_module(f"models.{args.model}")
net = nets.make()  #: model@models/large/__init__.py:3, model@models/small.py:3
# --- models/__init__.py
# --- models/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)
# --- models/large/__init__.py
from torch import nn
def make():
    return nn.Linear(9, 9)
# --- models/notes/other.py
from torch import nn
def make():
    return nn.Linear(5, 5)

# === a module of a name that is not known, in a folder that the program adds to its path
# --- main.py
import argparse, importlib, os, sys
from other import text
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nets"))
args = argparse.ArgumentParser().parse_args()
nets = importlib.import_module(args.model)
net = nets.make()  #: model@nets/large.py:3, model@nets/small.py:3
same = importlib.import_module(text()).make()  #: model
# --- other.py
from torch import nn
def make():
    return nn.Linear(5, 5)
def text():
    return input()
# --- nets/small.py
from torch import nn
def make():
    return nn.Linear(1, 1)
# --- nets/large.py
from torch import nn
def make():
    return nn.Linear(9, 9)

# === a module of a name that is not known, in no folder that the program names
# --- main.py
import argparse, importlib, sys
sys.path.append(".")
args = argparse.ArgumentParser().parse_args()
nets = importlib.import_module(args.model)
net = nets.make()  #: unknown object
# --- small.py
from torch import nn
def make():
    return nn.Linear(1, 1)

# === a module of a package that is not known
# --- main.py
import argparse, torch
from importlib import import_module
args = argparse.ArgumentParser().parse_args()
nets = import_module("models" f".{args.kind}.{args.model}")
net = nets.make()  #: model@models/large/deep.py:3, model@models/small/flat.py:3
# --- models/__init__.py
# --- models/other.py
from torch import nn
def make():
    return nn.Linear(5, 5)
# --- models/small/__init__.py
# --- models/small/flat.py
from torch import nn
def make():
    return nn.Linear(1, 1)
# --- models/large/__init__.py
# --- models/large/deep.py
from torch import nn
def make():
    return nn.Linear(9, 9)

# === any class of a module
# --- main.py
import argparse, torch
import nets
args = argparse.ArgumentParser().parse_args()
net = getattr(nets, args.model)()  #: model
other = nets.__dict__[args.model]()  #: model
third = vars(nets)[args.model]()  #: model
# --- nets.py
from torch import nn
class Small(nn.Module):
    pass
class Large(nn.Module):
    pass

# === the names of the own file
import torch
from torch import nn
class Small(nn.Module):
    pass
net = globals()["Small"]()  #: model

# === a file of a library's name that has not what is imported
# --- scripts/train.py
import torch
from transformers import AutoModelForMaskedLM
net = AutoModelForMaskedLM()  #: model
# --- transformers/__init__.py
def other():
    pass

# === any function of the own module is too much to say
import torch
def use(net):  #: net: number
    pass
use(3)
run = globals()[name]
run(torch.nn.Linear(1, 1))  #: nothing

# === any class that a package imports from its files
# --- main.py
import argparse, torch
import nets
args = argparse.ArgumentParser().parse_args()
net = nets.get(args.model)  #: model
# --- nets/__init__.py
from .small import *
from .large import Large
class Meter:
    pass
def get(name):
    table = globals()
    return table[name]()
# --- nets/small.py
from torch import nn
class Small(nn.Module):
    pass
# --- nets/large.py
from torch import nn
class Large(nn.Module):
    pass

# === a module by a name that begins with a variable, of a dictionary that fills itself
# --- train.py
import importlib, os
from torch import nn
class Lazy(dict):
    def __init__(self, paths):
        self.paths = paths
        super().__init__()
    def __getitem__(self, key):
        module = importlib.import_module(self.paths[key])
        made = self[key] = module.Net
        return made
def scan(folder):
    paths = {}
    for file in os.listdir(folder):
        name = file[:-3]
        paths[name] = f"{folder}.{name}"
    return paths
net = Lazy(scan("nets"))[args.net](3)  #: model
# --- nets/__init__.py
# --- nets/small.py
from torch import nn
class Net(nn.Linear):
    pass
# --- nets/large.py
from torch import nn
class Net(nn.LSTM):
    pass

# === which modules have a name
# --- train.py
import importlib
module = importlib.import_module(f"nets.{args.net}")
if hasattr(module, "Net"):
    made = module.Net  #: class
elif hasattr(module, "make"):
    made = module.make  #: function
else:
    made = 3  #: nothing
# --- nets/__init__.py
# --- nets/small.py
from torch import nn
class Net(nn.Linear):
    pass
# --- nets/large.py
from torch import nn
def make(width):
    return nn.Linear(width, 1)

# === a list of names that is added to
# --- train.py
from nets import *
net = make()  #: model@nets.py:5
other = hidden  #: nothing
# --- nets.py
from torch import nn
__all__ = []
hidden = nn.Conv2d(1, 1, 1)
def make():
    return nn.Linear(1, 1)
__all__.append("make")

# === a list of names that is not written out
# --- train.py
from nets import *
net = make()  #: model@nets.py:4
# --- nets.py
from torch import nn
__all__ = names()
def make():
    return nn.Linear(1, 1)

# === a list of names of which one is made
# --- train.py
from nets import *
net = make()  #: model@nets.py:4
# --- nets.py
from torch import nn
__all__ = ["make", PREFIX + "x"]
def make():
    return nn.Linear(1, 1)

# === names that a file binds in a try and in a match
# --- train.py
import nets
if hasattr(nets, "reason"):
    net = nets.make()  #: model@nets.py:7
# --- nets.py
from torch import nn
try:
    import missing
except ImportError as reason:
    pass
def make():
    return nn.Linear(1, 1)
