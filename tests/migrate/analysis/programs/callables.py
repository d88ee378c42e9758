# === a decorator that wraps and hands on
import functools, time
from torch import nn
def timed(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        start = time.time()
        result = f(*args, **kwargs)
        print(time.time() - start)
        return result
    return inner
@timed
def build(net):  #: net: model
    return net
m = build(nn.Linear(1, 1))  #: model@14

# === a decorator with arguments
import functools
from torch import nn
def retry(times):
    def decorate(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return f(*args, **kwargs)
        return inner
    return decorate
@retry(3)
def build():
    return nn.Linear(1, 1)
net = build()  #: model@12

# === a decorator that gives something else
from torch import nn
from torch.utils.data import DataLoader
def loader(f):
    def inner():
        return DataLoader(f())
    return inner
@loader
def train_set():
    return read("train")
batches = train_set()  #: dataloader@5

# === decorators of libraries keep the function
import functools, torch
from torch import nn
@functools.lru_cache(maxsize=None)
def build():
    return nn.Linear(1, 1)
@torch.no_grad()
def evaluate(net):  #: net: model
    return net
evaluate(build())

# === a decorator that registers
from torch import nn
REGISTRY = {}
def register(cls):
    REGISTRY[cls.__name__] = cls
    return cls
@register
class Net(nn.Module):
    pass
a = Net()  #: model
b = REGISTRY["Net"]()  #: model

# === a decorator with a name that registers
from torch import nn
class Registry:
    def __init__(self):
        self.items = {}
    def register(self, name):
        def decorate(cls):
            self.items[name] = cls
            return cls
        return decorate
    def get(self, name):
        return self.items[name]
MODELS = Registry()
@MODELS.register("net")
class Net(nn.Module):
    pass
net = MODELS.get("net")()  #: model

# === an object that is called
from torch import nn, optim
class Build:
    def __call__(self, n):
        return nn.Linear(n, n)
build = Build()
net = build(3)  #: model@4

# === a static method
from torch import nn
class Factory:
    @staticmethod
    def build(n):  #: n: number
        return nn.Linear(n, n)
a = Factory.build(3)  #: model@5
b = Factory().build(4)  #: model@5#2

# === a class method
from torch import nn
class Net(nn.Module):
    def __init__(self, n):  #: n: number
        super().__init__()
    @classmethod
    def small(cls, n):  #: cls: class, n: number
        return cls(n)
a = Net.small(3)  #: model@7
b = Net(2).small(3)  #: model@7#2

# === a property
from torch import nn
class Trainer:
    def __init__(self):
        self._net = nn.Linear(1, 1)
    @property
    def net(self):
        return self._net
net = Trainer().net  #: model@4

# === callbacks in a list
from torch import nn
class Trainer:
    def __init__(self, net):
        self.net = net
        self.callbacks = []
    def add_callback(self, f):
        self.callbacks.append(f)
    def fit(self):
        for callback in self.callbacks:
            callback(self.net)
def show(net):  #: net: model@13
    return net
trainer = Trainer(nn.Linear(1, 1))
trainer.add_callback(show)
trainer.fit()

# === callbacks by event
from collections import defaultdict
from torch import nn
class Engine:
    def __init__(self):
        self.handlers = defaultdict(list)
        self.net = nn.Linear(1, 1)
    def on(self, event, f):
        self.handlers[event].append(f)
    def fire(self, event):
        for handler in self.handlers[event]:
            handler(self)
def started(engine):  #: engine: instance@15
    return engine.net  #: model@6

engine = Engine()
engine.on("start", started)
engine.fire("start")

# === callbacks by event in a plain dictionary
from torch import nn
handlers = {}
def on(event, f):
    handlers.setdefault(event, []).append(f)
def show(net):  #: net: model
    return net
on("start", show)
for f in handlers.get("start", []):
    f(nn.Linear(1, 1))

# === an optimizer with a closure
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
opt = optim.LBFGS(net.parameters())
for x, y in DataLoader(data):  #: training by optimizer@5 over dataloader@6
    def closure():
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)  #: statistic
        loss.backward()
        return loss
    opt.step(closure)

# === a bound method as a value
from torch import nn
class Trainer:
    def __init__(self):
        self.net = nn.Linear(1, 1)
    def step(self, x):  #: x: number
        return self.net  #: model
step = Trainer().step
m = step(3)  #: model@4

# === a method chosen from a table
from torch import nn, optim
class Builder:
    def sgd(self, params):
        return optim.SGD(params, 1)
    def adam(self, params):
        return optim.Adam(params)
    def build(self, name, params):
        return {"sgd": self.sgd, "adam": self.adam}[name](params)
opt = Builder().build(name, nn.Linear(1, 1).parameters())  #: optimizer

# === a dictionary of constructors
from torch import nn, optim
OPTIMIZERS = {"adam": optim.Adam, "sgd": optim.SGD}
net = nn.Linear(1, 1)
opt = OPTIMIZERS[name](net.parameters(), lr=0.1)  #: optimizer@4
other = OPTIMIZERS.get(name)(net.parameters())  #: optimizer

# === getattr on a library
from torch import nn, optim
net = nn.Linear(1, 1)
opt = getattr(optim, args.optimizer)(net.parameters())  #: optimizer@3
one = getattr(optim, "Adam")  #: library name(torch.optim.Adam)

# === the dictionary of a library
import torchvision.models as models
net = models.__dict__[args.arch](pretrained=True)  #: model@2

# === a constructor under another name
import torch.nn as nn
Layer = nn.Linear
net = Layer(1, 1)  #: model@3

# === a constructor in a loop
from torch import nn
nets = []
for cls in (nn.Linear, nn.Bilinear):
    nets.append(cls(1, 1))
for net in nets:  #: net: model@4
    net.train()

# === map calls its function
from torch import nn
def build(n):  #: n: number
    return nn.Linear(n, n)
for net in map(build, [1, 2]):  #: net: model@3
    net.train()
a, b = map(build, [1, 2])  #: a: model, b: model

# === map of a lambda over the parts of a batch
from torch.utils.data import DataLoader
for batch in DataLoader(data):
    x, y = map(lambda t: t.cuda(), batch)  #: x: batch, y: batch

# === a nested function that is returned with its state
from torch import nn, optim
def make():
    net = nn.Linear(1, 1)
    opt = optim.SGD(net.parameters(), 1)
    def step(x):
        opt.step()  #: opt: optimizer@4
        return net(x)
    return net, step
net, step = make()  #: net: model, step: function
step(1)

# === a factory that is given its class
from torch import nn, optim
def build(cls, params, **options):
    return cls(params, **options)
net = nn.Linear(1, 1)
opt = build(optim.SGD, net.parameters(), lr=0.1)  #: optimizer

# === an object made from a configuration
from torch import nn, optim
class Config(dict):
    def init_obj(self, name, module, *args, **kwargs):
        kind = self[name]["type"]
        options = dict(self[name]["args"])
        options.update(kwargs)
        return getattr(module, kind)(*args, **options)
config = Config(read())
net = nn.Linear(1, 1)
opt = config.init_obj("optimizer", optim, net.parameters())  #: optimizer
sched = config.init_obj("scheduler", optim.lr_scheduler, opt)  #: scheduler

# === two kinds of objects from one factory
from torch import nn, optim
def make(module, name, *args):
    return getattr(module, name)(*args)
net = make(nn, "Linear", 1, 1)  #: model
opt = make(optim, "SGD", net.parameters())  #: optimizer

# === a wrapper of a library around what is passed by a star
from torch import nn
parts = [nn.Linear(1, 1), [0, 1]]
net = nn.DataParallel(*parts)  #: model@2
other = nn.DataParallel(unheard_of, [0, 1])  #: nothing
named = nn.DataParallel(module=parts[0], device_ids=[0])  #: model@2

# === two networks from one configuration
from torch import nn, optim
class Config:
    def init_obj(self, name, module, *args, **kwargs):
        return getattr(module, self.options[name])(*args, **kwargs)
config = Config()
g = config.init_obj("g", nn, 1, 1)  #: model@4
d = config.init_obj("d", nn, 2, 2)  #: model@4#2
opt_g = config.init_obj("opt_g", optim, g.parameters())  #: optimizer@4#3
opt_d = config.init_obj("opt_d", optim, params=d.parameters())  #: optimizer@4#4

# === a factory in a factory
from torch import nn, optim
def make(module, name, *args):
    return getattr(module, name)(*args)
def build(module, *args):
    return make(module, "Thing", *args)
a = build(nn, 1)  #: model
b = build(optim, a.parameters())  #: optimizer

# === a function that makes a loader each time it is called
import torch
from torch.utils.data import DataLoader, TensorDataset
def make_loader(train):
    data = TensorDataset(torch.zeros(8, 1))
    return DataLoader(data, batch_size=2, shuffle=train)
train = make_loader(True)  #: dataloader@5
test = make_loader(train=False)  #: dataloader@5#2
for x in train:  #: x: batch@5
    pass
for x in test:  #: x: batch@5#2
    pass

# === loaders that come with their data, from a method
import torch
from torch.utils.data import DataLoader, TensorDataset
class Experiment:
    def __init__(self, args):
        self.args = args
    def data(self, flag):
        if flag == "test":
            shuffle = False
        else:
            shuffle = True
        data = TensorDataset(torch.zeros(8, 1))
        loader = DataLoader(data, batch_size=self.args.batch_size, shuffle=shuffle)
        return data, loader
    def train(self):
        train_data, train_loader = self.data("train")  #: train_data: dataset@11, train_loader: dataloader@12
        test_data, test_loader = self.data("test")  #: test_data: dataset@11#2, test_loader: dataloader@12#2

# === a function that hands on what it is given makes nothing
from torch import nn
def wrap(net):
    return nn.DataParallel(net)
a = wrap(nn.Linear(1, 1))  #: model@4
b = wrap(a)  #: model@4

# === a function that gives the one object there is
from torch import nn
NET = nn.Linear(1, 1)
def net():
    return NET
a = net()  #: model@2
b = net()  #: model@2

# === a function that keeps what it has made
import functools
from torch import nn
@functools.lru_cache(maxsize=None)
def net():
    return nn.Linear(1, 1)
a = net()  #: model@5
b = net()  #: model@5

# === a function that calls itself to make something
from torch import nn
def deep(n):
    if n == 0:
        return nn.Linear(1, 1)
    return nn.Sequential(deep(n - 1), nn.ReLU())
a = deep(2)  #: model

# === a method that is passed on
from torch import nn
class Trainer:
    def __init__(self):
        self.net = nn.Linear(1, 1)
        self.hook = self.on_step
    def on_step(self, n):  #: n: number
        return self.net  #: model
    def fit(self):
        return self.hook(3)  #: model@4
Trainer().fit()

# === a function with a lambda that reads nothing of what it makes gives each call its own
from torch.utils.data import DataLoader
def provide(args, flag):
    data = Data(flag)
    loader = DataLoader(data, collate_fn=lambda rows: pad(rows, args.longest))
    return data, loader
a, train = provide(args, "train")  #: train: dataloader@4
b, test = provide(args, "test")  #: test: dataloader@4#2

# === a function with a lambda that has parameters of its own gives each call its own
from torch import nn
def provide(name):
    net = nn.Sequential(nn.Linear(1, 1), Apply(lambda x: x))
    print(name, sum(x.numel() for x in net.parameters()))
    return net.cuda()
net = provide("net")  #: model@3
teacher = provide("teacher")  #: model@3#2

# === a function with the rule of a schedule in it gives each call its own
import torch
from torch.optim.lr_scheduler import LambdaLR
def schedule(optimizer, args):
    if args.kind == "lambda":
        def rule(epoch):
            share = 1.0 - max(0, epoch - args.first) / float(args.last + 1)
            return share
        made = LambdaLR(optimizer, lr_lambda=rule)
    return made
net, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
a = schedule(torch.optim.SGD(net.parameters(), lr=0.1), args)  #: scheduler@8
b = schedule(torch.optim.SGD(other.parameters(), lr=0.1), args)  #: scheduler@8#2

# === a function that counts through its data gives each call a loader of its own
from torch.utils.data import DataLoader
def provide(data, name):
    kept = []
    for i in range(len(data)):
        if data.names[i] == name:
            kept.append(data[i])
    return DataLoader(kept)
a = provide(data, "train")  #: dataloader@7
b = provide(data, "test")  #: dataloader@7#2

# === a function that goes through the description of a net gives each call its own
from torch import nn
def build(widths, names):
    net = nn.Sequential()
    for i, (old, new) in enumerate(widths):
        net.add_module(f"layer{i}", nn.Linear(old, new))
    for name in names:
        net.add_module(name, nn.ReLU())
    return net
large = build([(8, 64), (64, 64)], ["last"])  #: model@3
small = build([(8, 4), (4, 4)], ["last"])  #: model@3#2

# === a function that goes over a loader is run once for all calls
from torch import nn
from torch.utils.data import DataLoader
def build(loader):
    net, count = nn.Linear(1, 1), 0
    for x, y in loader:
        count += len(x)
    return net
a = build(DataLoader(data))  #: model@4
b = build(DataLoader(more))  #: model@4

# === a function that trains in a loop is run once for all calls
import torch
def provide(x):
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(3):
        net(x).sum().backward()
        optimizer.step()
    return net
a = provide(x)  #: model@3
b = provide(y)  #: model@3

# === a function with another one in it that makes something is run once for all calls
from torch import nn
def provide(name):
    def head():
        return nn.Linear(1, 1)
    return nn.Sequential(nn.Linear(1, 1), head())
net = provide("net")  #: model@5
teacher = provide("teacher")  #: model@5

# === a function that moves gives the model back, though other calls pass tensors
import torch
from torch import nn
def cuda(x, wanted):
    return x.cuda() if wanted else x
noise = cuda(torch.randn(3), True)  #: tensor
net = cuda(nn.Linear(3, 3), True)  #: model
rows = cuda(torch.ones(3), False)  #: tensor

# === a decorator that is a method is given its object
from torch import nn
class Registry:
    def __init__(self):
        self.made = {}
    def add(self, f):  #: self: instance@8; f: function
        self.made["build"] = f
        return f
registry = Registry()
@registry.add
def build():
    return nn.Linear(1, 1)
net = registry.made["build"]()  #: model@11

# === a decorator without parameters gives nothing to hold on to
from torch import nn
def strange():
    pass
@strange
def build():
    return nn.Linear(1, 1)
net = build()  #: model@6

# === a decorator that calls what it gets with more than it was handed
from torch import nn
def with_head(f):
    def inner(net):
        return f(net, nn.Conv2d(1, 1, 1))
    return inner
@with_head
def build(net, head):  #: net: model@9, head: model@4
    return head
net = build(nn.Linear(1, 1))  #: model@4

# === a wrapper with parameters that must be named
from torch import nn
def logged(f):
    def inner(*args, quiet=False):
        return f(*args)
    return inner
@logged
def build(net):  #: net: model@9
    return net
net = build(nn.Linear(1, 1), quiet=True)  #: model@9

# === filter, with and without a function of the project
from torch import nn
nets = [nn.Linear(1, 1), nn.Conv2d(1, 1, 1)]
def is_wide(net):  #: net: model@2, model@2
    return net.out_features
wide = list(filter(is_wide, nets))[0]  #: model, model
some = list(filter(None, nets))[0]  #: model, model

# === what stands behind a star of unknown length
from torch import nn
def use(first, *rest):  #: first: model
    return rest
nets = load()
given = use(*nets, *[nn.Linear(1, 1)], nn.Conv2d(1, 1, 1))
print(given)  #: given: container

# === partial with a star
import functools
from torch import nn
def use(a, b):  #: a: model, b: model
    return b
nets = [nn.Linear(1, 1) for _ in range(2)]
first = functools.partial(use, *nets)
net = first()  #: model

# === a lambda that is kept and called elsewhere
from torch import nn
class Box:
    def __init__(self, build):
        self.build = build
    def get(self):
        return self.build()  #: model@7
Box(lambda: nn.Linear(1, 1)).get()

# === filter with a function of a library
import torch
from torch import nn
net = list(filter(torch.is_tensor, [nn.Linear(1, 1)]))[0]  #: model@3

# === an argument behind a star of unknown length
from torch import nn, optim
def use(first, *rest):  #: first: model, optimizer
    return first
nets = [nn.Linear(1, 1) for _ in range(len(names))]
thing = use(*nets, optim.SGD([], 1))

# === what is spread holds a loader
from torch import nn
from torch.utils.data import DataLoader
def use(first, *rest):  #: first: batch@5
    return first
use(*list(DataLoader(data())))

# === arguments of which nothing is known
from torch import nn
def use(net=None, **others):  #: net: nothing
    return net
use(**settings())
both = {**settings(), "net": nn.Linear(1, 1)}
print(both["net"])  #: both["net"]: model@5

# === a decorator that gives something else than it makes
from torch import nn
HOOKS = []
def hooked(f):
    def inner():
        return f()
    HOOKS.append(inner)
    return None
@hooked
def build():
    return nn.Linear(1, 1)
net = HOOKS[0]()  #: model@10

# === a lambda that makes a loader is run for each call
from torch.utils.data import DataLoader
make = lambda data: DataLoader(data)
train = make(1)  #: dataloader@2
test = make(2)  #: dataloader@2#2

# === a function that makes a loader, with a default
from torch.utils.data import DataLoader, RandomSampler
def make(data, sampler=RandomSampler(data())):
    return DataLoader(data, sampler=sampler)
train = make(1)  #: dataloader@3
test = make(2)  #: dataloader@3#2

# === both branches return
from torch import nn, optim
def make(kind):
    if kind:
        return nn.Linear(1, 1)
    else:
        return optim.SGD([], 1)
thing = make(1)  #: model@4, optimizer@6

# === an object whose class inherits what it does when called from a library
import library
from torch.utils.data import DataLoader
class Accuracy(library.Metric):
    pass
accuracy = Accuracy()
for x in DataLoader(data()):
    print(accuracy(x))  #: accuracy(x): statistic, unknown object

# === sum has a start
import torch
from torch.utils.data import DataLoader
for x in DataLoader(data()):
    total = sum([torch.zeros(1)], x)  #: samples, tensor

# === a decorator that gives something else than what it has kept
from torch import nn, optim
def other(function):
    def wrapper(*args, **kwargs):
        out = function(*args, **kwargs)
        out = optim.SGD(out.parameters(), 1)
        return out
    return wrapper
def another(function):
    function = optimizer
    return function
def optimizer():
    return optim.SGD([], 1)
@other
def make():
    return nn.Linear(1, 1)
@another
def build():
    return nn.Linear(1, 1)
x = make()  #: optimizer
y = build()  #: optimizer

# === what an earlier call has left may come out of a later one
from torch import nn
known = {}
def put(name, net):
    known[name] = net
    return known["first"]
put("first", nn.Linear(1, 1))
x = put("second", nn.Linear(2, 2))  #: model@6, model@7
best = None
def better(net):
    global best
    if best is None or is_good(net):
        best = net
    return best
better(nn.Linear(3, 3))
y = better(nn.Linear(4, 4))  #: model@14, model@15

# === what an earlier call has left in a default, a class or a closure
from torch import nn
def first(net, seen=[]):
    seen.append(net)
    return seen[0]
first(nn.Linear(1, 1))
x = first(nn.Linear(2, 2))  #: model@5, model@6
class Best:
    net = None
    @classmethod
    def of(cls, net):
        cls.net = cls.net or net
        return cls.net
Best.of(nn.Linear(3, 3))
y = Best.of(nn.Linear(4, 4))  #: model@13, model@14
def run():
    held = [None]
    def hold(net):
        held[0] = held[0] or net
        return held[0]
    hold(nn.Linear(5, 5))
    return hold(nn.Linear(6, 6))  #: model@20, model@21
run()

# === a method without named parameters as a decorator
from torch import nn
class Registry:
    def add(*given):
        return given[1]
registry = Registry()
@registry.add
def make():
    return nn.Linear(1, 1)
net = make()  #: model
