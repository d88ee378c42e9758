# Classes that are chosen by a name.
# === a decorator that keeps a class
from torch import nn
MODELS = {}
def register(name):
    def keep(cls):
        MODELS[name] = cls
        return cls
    return keep
@register("small")
class Small(nn.Module):
    pass
net = MODELS["small"]()  #: model
other = MODELS[name]()  #: model
third = Small()  #: model

# === a decorator without a name
from torch import nn
MODELS = {}
def register(cls):
    MODELS[cls.__name__] = cls
    return cls
@register
class Small(nn.Module):
    pass
net = MODELS[name]()  #: model

# === a registry object, in a file of its own
# --- main.py
import torch
from registry import MODELS
import nets
net = MODELS.get(name)()  #: model
other = MODELS.build(name, 3)  #: model
# --- registry.py
class Registry:
    def __init__(self):
        self.kept = {}
    def register(self, name):
        def keep(cls):
            self.kept[name] = cls
            return cls
        return keep
    def get(self, name):
        return self.kept[name]
    def build(self, name, *args):
        return self.kept[name](*args)
MODELS = Registry()
# --- nets.py
from torch import nn
from registry import MODELS
@MODELS.register("small")
class Small(nn.Module):
    pass

# === functions in a registry
from torch import nn
MODELS = {}
def register(function):
    MODELS[function.__name__] = function
    return function
@register
def small(width):
    return nn.Linear(width, 1)  #: model; width: number
net = MODELS[name](3)  #: model

# === subclasses tell their base
from torch import nn
class Base(nn.Module):
    kept = {}
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        Base.kept[cls.__name__] = cls
class Small(Base):
    pass
net = Base.kept[name]()  #: model

# === a dictionary of classes
from torch import nn, optim
class Small(nn.Module):
    pass
class Large(nn.Module):
    pass
MODELS = {"small": Small, "large": Large}
OPTIMIZERS = {"sgd": optim.SGD, "adam": optim.Adam}
net = MODELS[name]()  #: model
opt = OPTIMIZERS[name](net.parameters())  #: optimizer

# === a factory that chooses
from torch import nn
class Small(nn.Module):
    pass
class Large(nn.Module):
    pass
def make(name):
    if name == "small":
        return Small()
    elif name == "large":
        cls = Large
    else:
        raise ValueError(name)
    return cls()
net = make("large")  #: model

# === a class that is handed over
from torch import nn, optim
class Net(nn.Module):
    pass
def build(cls, make):
    net = cls()  #: model
    return net, make(net.parameters())
net, opt = build(Net, optim.SGD)  #: net: model; opt: optimizer

# === a class that is bound in part
from functools import partial
from torch import nn
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
make = partial(Net, 3)
net = make()  #: model

# === a decorator that wraps leaves what is called
import functools
from torch import nn
def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)
    return inner
@timed
def make(width):
    return nn.Linear(width, 1)  #: model; width: number
net = make(3)  #: model
