# === either branch
from torch import nn, optim
if flag:
    thing = nn.Linear(1, 1)
else:
    thing = optim.SGD([], 1)
use(thing)  #: thing: model@3, optimizer@5

# === a branch that returns does not go on
from torch import nn
def build(small):
    net = nn.Linear(1, 1)
    if small:
        net = "none"
        return net  #: text(none)
    return net  #: model@3
build(True)

# === a branch that raises does not go on
import torch
from torch import nn, optim
if name == "net":
    thing = nn.Linear(1, 1)
elif name == "opt":
    thing = optim.SGD([], 1)
else:
    thing = "unknown"
    raise ValueError(thing)
use(thing)  #: thing: model, optimizer

# === what is made in the first round is used in the second
from torch import nn
net = None
for epoch in range(3):
    if net is not None:
        net.train()  #: net: model@6
    net = nn.Linear(1, 1)

# === handed round over several rounds
from torch import nn
a = b = c = None
for epoch in range(9):
    use(c)  #: c: model@5
    a, b, c = nn.Linear(1, 1), a, b

# === while true
from torch.utils.data import DataLoader
it = iter(DataLoader(data))
while True:
    x = next(it)  #: batch@2
    if done(x):
        break
use(x)  #: x: batch

# === a name at a break
from torch import nn, optim
thing = None
for n in sizes:
    thing = nn.Linear(n, n)
    if n > 3:
        break
    thing = optim.SGD([], 1)
use(thing)  #: thing: model, optimizer

# === a name at a continue
from torch import nn, optim
thing = None
for n in sizes:
    use(thing)  #: thing: model@5, optimizer@8
    thing = nn.Linear(n, n)
    if n > 3:
        continue
    thing = optim.SGD([], 1)

# === the else of a loop
from torch import nn, optim
for n in sizes:
    thing = nn.Linear(n, n)
    if n > 3:
        break
else:
    thing = optim.SGD([], 1)
use(thing)  #: thing: model, optimizer

# === try and except
from torch import nn, optim
try:
    thing = nn.Linear(1, 1)
    load(thing)
    thing = "loaded"
except OSError as error:
    use(thing)  #: thing: model, text
    thing = optim.SGD([], 1)
    name = error  #: nothing
use(thing)  #: thing: text, optimizer

# === the else of a try
from torch import nn
try:
    net = nn.Linear(1, 1)
except RuntimeError:
    raise
else:
    net.train()  #: net: model
finally:
    use(net)  #: net: model
net.eval()  #: net: model

# === an import that may be missing
try:
    from apex import amp
except ImportError:
    amp = None
import torch
net = torch.nn.Linear(1, 1)
if amp is not None:
    net, opt = amp.initialize(net, torch.optim.SGD(net.parameters(), 1))
net.train()  #: net: model

# === one of two imports
try:
    from torch.optim import AdamW
except ImportError:
    from transformers import AdamW
from torch import nn
opt = AdamW(nn.Linear(1, 1).parameters())  #: optimizer@6

# === an import for types only
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from torch import nn
from torch import optim
def use(net: nn.Module):
    return optim.SGD(net.parameters(), 1)  #: optimizer
use(net)

# === an import inside a function
def main():
    from torch import nn
    return nn.Linear(1, 1)  #: model
net = main()  #: model@3

# === match on a text
from torch import nn, optim
match name:
    case "net":
        thing = nn.Linear(1, 1)
    case "opt" | "sgd":
        thing = optim.SGD([], 1)
    case _:
        raise ValueError(name)
use(thing)  #: thing: model, optimizer

# === match takes a sequence apart
from torch import nn, optim
net = nn.Linear(1, 1)
match (net, optim.SGD(net.parameters(), 1), 3):
    case [m, o, *rest]:
        a = m  #: model
        b = o  #: optimizer
        c = rest[0]  #: number

# === match takes a list apart and leaves the rest
from torch import nn
match [nn.Linear(1, 1), nn.Linear(2, 2), nn.Linear(3, 3)]:
    case [first, *rest]:
        print(first, rest, rest[0])  #: first: model@2; rest: container@3; rest[0]: model@2

# === match takes a mapping apart
from torch import nn, optim
parts = {"net": nn.Linear(1, 1), "opt": optim.SGD([], 1)}
match parts:
    case {"net": net, **rest}:
        a = net  #: model

# === match takes an object apart
from dataclasses import dataclass
from torch import nn
@dataclass
class Parts:
    net: object
    lr: float
match Parts(nn.Linear(1, 1), 0.1):
    case Parts(net, lr=rate):
        a = net  #: model
        b = rate  #: number
    case Parts() as whole:
        c = whole  #: instance

# === with gives the object itself
import torch
from tqdm import tqdm
from torch.utils.data import DataLoader
with tqdm(DataLoader(data)) as bar:  #: bar: iterator
    for x in bar:  #: evaluation over dataloader@4; x: batch
        use(x)

# === with a context manager of the project
from torch import nn
class Session:
    def __init__(self):
        self.net = nn.Linear(1, 1)
    def __enter__(self):
        return self.net
    def __exit__(self, *error):
        pass
with Session() as net:  #: net: model@4
    net.train()

# === with a context manager that returns itself
from torch import nn
class Session:
    def __enter__(self):
        self.net = nn.Linear(1, 1)
        return self
    def __exit__(self, *error):
        pass
with Session() as session:  #: session: instance
    session.net.train()  #: session.net: model

# === with a generator that is a context manager
import contextlib
from torch import nn
@contextlib.contextmanager
def evaluating(net):
    net.eval()
    yield net
    net.train()
with evaluating(nn.Linear(1, 1)) as net:  #: net: model@8
    net(1)

# === several context managers
import torch
from torch import nn
from contextlib import nullcontext
net = nn.Linear(1, 1)
with torch.no_grad(), open("x") as file:
    out = net  #: model

# === async code
import asyncio, torch
from torch import nn
async def build():
    return nn.Linear(1, 1)
async def main():
    net = await build()  #: model@4
    async with lock:
        net.train()  #: net: model
    async for message in queue:  #: neither; message: nothing
        use(message)
asyncio.run(main())

# === a loop inside a loop reaches a fixed point
from torch import nn
net = last = None
for epoch in range(3):
    for step in range(3):
        use(last)  #: last: model
        last = net
    net = nn.Linear(1, 1)

# === code behind an early return at the top
import sys
from torch import nn
def main():
    if not ready:
        sys.exit(1)
    net = nn.Linear(1, 1)
    return net  #: model
main()

# === a handler that raises does not end what follows
from torch import nn
net = None
if flag:
    try:
        net = nn.Linear(1, 1)
    except RuntimeError:
        raise
use(net)  #: net: model

# === a try in which every way ends
from torch import nn, optim
def build():
    thing = nn.Linear(1, 1)
    try:
        thing = optim.SGD([], 1)
        return thing  #: optimizer
    except RuntimeError:
        raise ValueError
    finally:
        use(thing)  #: thing: model, optimizer
build()

# === a match with a case for everything else
from torch import nn, optim
thing = "none"
match name:
    case "net":
        thing = nn.Linear(1, 1)
    case _:
        thing = optim.SGD([], 1)
use(thing)  #: thing: model, optimizer

# === a match without one
from torch import nn
thing = "none"
match name:
    case "net":
        thing = nn.Linear(1, 1)
use(thing)  #: thing: model, text

# === an exception keeps what was there before
from torch.utils.data import DataLoader
it = iter(DataLoader(data))
x = None
try:
    x = next(it)
except StopIteration:
    pass
use(x)  #: x: batch

# === a guard of a case is looked at
from torch import nn, optim
net = nn.Linear(1, 1)
match kind():
    case "sgd" if (chosen := net):
        print(chosen)  #: chosen: model@2
    case {"model": inner, **rest}:
        print(rest)
    case _:
        pass

# === a case takes a batch apart
from torch.utils.data import DataLoader
for batch in DataLoader(data()):
    match batch:
        case {"x": x, "y": y}:
            print(x)  #: x: batch

# === an assert with a message, and a raise with a cause
from torch import nn
net = nn.Linear(1, 1)
def check(found, error=None):  #: found: model@2
    return found
assert check(net), "no model"
try:
    check(net)
except ValueError as error:
    raise RuntimeError(check(net)) from error

# === names that are handed round a ring
from torch import nn
net = nn.Linear(1, 1)
while net is not None:
    other = net  #: model@2
    net, other, third, fourth, fifth = other, third, fourth, fifth, net

# === a branch of a try that raises is what its handler sees
from torch import nn
net = nn.Linear(1, 1)
try:
    if big():
        net = nn.Linear(2, 2)
        raise MemoryError
    net = nn.Linear(3, 3)
except MemoryError:
    use(net)  #: net: model@2, model@5, model@7

# === a value between two statements of a block in a try
from torch import nn
net = nn.Linear(1, 1)
try:
    with open("log") as log:
        net = nn.Linear(2, 2)
        try:
            net = nn.Linear(3, 3)
            net = log
        finally:
            use(log)
except ValueError:
    use(net)  #: net: model@2, model@5, model@7, unknown object

# === what a finally sees is of every way out; what follows it only of those that go on
from torch import nn
def train(small):
    net = nn.Linear(1, 1)
    try:
        if small:
            net = nn.Linear(2, 2)
            return net
        net = nn.Linear(3, 3)
    except KeyError:
        net = nn.Linear(4, 4)
        raise
    finally:
        save(net)  #: net: model@3, model@6, model@8, model@10
    return net  #: net: model@8
train(small())

# === a context manager that swallows what is raised in it
from contextlib import suppress
from torch import nn
net = nn.Linear(1, 1)
with suppress(RuntimeError):
    net = nn.Linear(2, 2)
use(net)  #: net: model@3, model@5
def make():
    net = nn.Linear(3, 3)
    if small():
        net = nn.Linear(4, 4)
        with suppress(KeyError):
            return known[net]
    return net  #: model@8, model@10
make()

# === a context manager of the project that swallows
from contextlib import contextmanager
import torch
from torch import nn
class Careful:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return True
class Plain:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return None
@contextmanager
def careful():
    try:
        yield
    except ValueError:
        print("again")
@contextmanager
def plain():
    try:
        yield
    except ValueError:
        raise
a = b = c = d = nn.Linear(1, 1)
with Careful():
    a = nn.Linear(2, 2)
use(a)  #: a: model@26, model@28
with Plain():
    b = nn.Linear(3, 3)
use(b)  #: b: model@31
with careful():
    c = nn.Linear(4, 4)
use(c)  #: c: model@26, model@34
with plain():
    d = nn.Linear(5, 5)
use(d)  #: d: model@37
