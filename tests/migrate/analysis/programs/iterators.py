# === iter and next
from torch.utils.data import DataLoader
loader = DataLoader(data)
it = iter(loader)  #: iterator
x, y = next(it)  #: x: batch@2, y: batch
z = next(iter(loader))  #: batch@2

# === next until it is exhausted
from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1)
loader = DataLoader(data)
it = iter(loader)
for step in range(100):
    try:
        x = next(it)
    except StopIteration:
        it = iter(loader)
        x = next(it)
    loss = net(x).mean()  #: statistic@5

# === enumerate around tqdm around a loader
from tqdm import tqdm
from torch.utils.data import DataLoader
for i, (x, y) in enumerate(tqdm(DataLoader(data))):  #: evaluation over dataloader@3; i: number, x: batch, y: batch
    use(x)

# === tqdm around enumerate
from tqdm.auto import tqdm
from torch.utils.data import DataLoader
loader = DataLoader(data)
bar = tqdm(enumerate(loader), total=len(loader))  #: iterator
for i, batch in bar:  #: evaluation over dataloader@3; i: number, batch: batch
    use(batch)

# === enumerate under another name
from torch.utils.data import DataLoader
count = enumerate
for i, x in count(DataLoader(data)):  #: evaluation over dataloader@3; i: number, x: batch
    use(x)

# === zip of two loaders
from itertools import cycle
from torch.utils.data import DataLoader
a, b = DataLoader(x), DataLoader(y)
for u, v in zip(a, cycle(b)):  #: evaluation over dataloader@3; u: batch, v: batch
    use(u)

# === zip of what is in a list
from torch.utils.data import DataLoader
loaders = [DataLoader(a), DataLoader(b)]
for x, y in zip(*loaders):  #: evaluation over dataloader@2; x: batch, y: batch
    use(x)

# === islice and chain
from itertools import chain, islice
from torch.utils.data import DataLoader
a, b = DataLoader(x), DataLoader(y)
for batch in islice(a, 10):  #: evaluation over dataloader@3; batch: batch
    use(batch)
for batch in chain(a, b):  #: evaluation over dataloader@3; batch: batch
    use(batch)

# === chained parameters are parameters
from itertools import chain
from torch import nn, optim
a, b = nn.Linear(1, 1), nn.Linear(2, 2)
both = chain(a.parameters(), b.parameters())  #: parameters
opt = optim.SGD(both, 1)  #: optimizer

# === parameters that are added up
from torch import nn, optim
a, b = nn.Linear(1, 1), nn.Linear(2, 2)
both = list(a.parameters()) + list(b.parameters())  #: container, parameters
opt = optim.SGD([*a.parameters(), *b.parameters()], 1)  #: optimizer

# === parameters that are filtered
from torch import nn, optim
net = nn.Linear(1, 1)
some = filter(lambda p: p.requires_grad, net.parameters())  #: parameters
more = [p for p in net.parameters() if p.requires_grad]  #: container, parameters

# === a generator
from torch.utils.data import DataLoader
def halves(loader):
    for x, y in loader:  #: neither
        yield x[:2], y
for x, y in halves(DataLoader(data)):  #: evaluation over dataloader@5; x: samples, y: batch
    use(x)

# === a generator around each of two loaders
from torch.utils.data import DataLoader
def forever(loader):
    while True:
        for batch in loader:
            yield batch
train = forever(DataLoader(a))  #: iterator
test = forever(DataLoader(b))
x = next(train)  #: batch@6

# === an endless generator
from torch import nn, optim
from torch.utils.data import DataLoader
def cycle(dl):
    while True:
        for d in dl:
            yield d
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1)
for step, x in enumerate(cycle(DataLoader(data))):  #: training by optimizer@8 over dataloader@9; x: batch
    net(x).mean().backward()
    opt.step()

# === yield from
from torch.utils.data import DataLoader
def batches(loader):
    yield from loader
for x in batches(DataLoader(data)):  #: evaluation over dataloader@4; x: batch
    use(x)

# === log_every
import time, torch
from torch.utils.data import DataLoader
class Logger:
    def log_every(self, iterable, every):
        i = 0
        for obj in iterable:
            yield obj
            i += 1
logger = Logger()
for x, y in logger.log_every(DataLoader(data), 10):  #: evaluation over dataloader@10; x: batch
    use(x)

# === log_every inside and outside of enumerate
import torch
from torch.utils.data import DataLoader
def log_every(iterable, every):
    for i, obj in enumerate(iterable):
        yield obj
loader = DataLoader(data)
for i, (x, y) in enumerate(log_every(loader, 10)):  #: evaluation over dataloader@6; i: number, x: batch
    use(x)
for i, (x, y) in log_every(enumerate(loader), 10):  #: evaluation over dataloader@6; i: number, x: batch
    use(x)

# === an object with __iter__
from torch.utils.data import DataLoader
class ToDevice:
    def __init__(self, loader):
        self.loader = loader
    def __iter__(self):
        for x, y in self.loader:
            yield x.cuda(), y.cuda()
    def __len__(self):
        return len(self.loader)
for x, y in ToDevice(DataLoader(data)):  #: evaluation over dataloader@10; x: batch, y: batch
    use(x)

# === an object whose __iter__ yields from a loader
from torch.utils.data import DataLoader
class Data:
    def __init__(self):
        self.loader = DataLoader(read())
    def __iter__(self):
        yield from self.loader
for x in Data():  #: evaluation over dataloader@4; x: batch
    use(x)

# === an object whose __iter__ gives an iterator
from torch.utils.data import DataLoader
class Data:
    def __init__(self):
        self.loader = DataLoader(read())
    def __iter__(self):
        return iter(self.loader)
for i, x in enumerate(Data()):  #: evaluation over dataloader@4; x: batch
    use(x)

# === an object with __next__
from torch.utils.data import DataLoader
class Prefetcher:
    def __init__(self, loader):
        self.it = iter(loader)
    def __iter__(self):
        return self
    def __next__(self):
        return next(self.it)
    def next(self):
        return next(self.it)
p = Prefetcher(DataLoader(data))
x = next(p)  #: batch@11
y = p.next()  #: batch@11
for z in p:  #: evaluation over dataloader@11; z: batch
    use(z)

# === an object with __getitem__
from torch.utils.data import DataLoader
class Pair:
    def __init__(self):
        self.loaders = [DataLoader(a), DataLoader(b)]
    def __getitem__(self, i):
        return self.loaders[i]
for x in Pair()[0]:  #: evaluation over dataloader@4; x: batch
    use(x)

# === a generator expression over a loader
from torch.utils.data import DataLoader
moved = ((x.cuda(), y.cuda()) for x, y in DataLoader(data))
for x, y in moved:  #: evaluation over dataloader@2; x: batch, y: batch
    use(x)

# === a list of batches is no loader
from torch.utils.data import DataLoader
batches = list(DataLoader(data))  #: container
for x in batches:  #: evaluation over dataloader@2; x: batch
    use(x)

# === sorted, reversed and set
from torch import nn
nets = [nn.Linear(1, 1), nn.Linear(2, 2)]
for net in reversed(nets):  #: net: model
    net.train()
for net in sorted(nets, key=size):  #: net: model
    net.train()
some = list(set(nets))[0]  #: model

# === models and optimizers in lists
from torch import nn, optim
nets = [nn.Linear(n, n) for n in sizes]  #: container
opts = [optim.SGD(net.parameters(), 1) for net in nets]
for net, opt in zip(nets, opts):  #: net: model@2, opt: optimizer@3
    opt.step()

# === a list that is inserted into loses its order
from torch import nn, optim
parts = [nn.Linear(1, 1)]
parts.insert(0, optim.SGD([], 1))
x = parts[0]  #: model, optimizer

# === a list that is appended to keeps it
from torch import nn, optim
parts = [nn.Linear(1, 1)]
parts.append(optim.SGD([], 1))
x = parts[0]  #: model
y = parts[1]  #: optimizer
z = parts[-1]  #: model, optimizer

# === a slice of a list
from torch import nn
nets = [nn.Linear(1, 1), nn.Linear(2, 2)]
for net in nets[1:]:  #: net: model
    net.train()

# === a queue
from collections import deque
from torch.utils.data import DataLoader
queue = deque(maxlen=3)
for x in DataLoader(data):
    queue.append(x)
y = queue.popleft()  #: batch

# === the sum of losses
from torch import nn
from torch.utils.data import DataLoader
net, crit = nn.Linear(1, 1), nn.MSELoss()
for x, y in DataLoader(data):
    losses = {"a": crit(net(x), y), "b": crit(net(x), y)}
    loss = sum(losses.values())  #: statistic@4
    mean = loss / 2  #: statistic

# === a range is no loader
from torch.utils.data import DataLoader
loader = DataLoader(data)
for i in range(len(loader)):  #: neither
    use(i)

# === batches in dictionaries from a generator
from torch.utils.data import DataLoader
def prepare(loader):
    for x, y in loader:
        yield {"x": x.cuda(), "y": y.cuda()}
for batch in prepare(DataLoader(data)):  #: evaluation over dataloader@5
    x = batch["x"]  #: batch

# === a generator of parts of a batch is no run over the loader
from torch import nn
from torch.utils.data import DataLoader
def parts(batch, n):
    for i in range(n):  #: neither
        yield batch["x"]
def steps(net, x):
    while True:
        x = net(x)
        yield x
net = nn.Linear(1, 1)
for batch in DataLoader(data):  #: evaluation over dataloader@11
    for x in parts(batch, 3):  #: neither; x: batch
        use(x)
    for y in steps(net, batch["x"]):  #: neither; y: samples
        use(y)

# === generators of an object
from torch.utils.data import DataLoader
class Data:
    def __init__(self):
        self.loader = DataLoader(read())
    def batches(self):
        for x, y in self.loader:
            yield x.cuda(), y.cuda()
for x, y in Data().batches():  #: evaluation over dataloader@4; x: batch
    use(x)

# === one generator for two loops computes nothing from nothing
from torch import nn
from torch.utils.data import DataLoader
def log_every(iterable, n):
    for x in iterable:
        yield x
net, crit = nn.Linear(1, 1), nn.CrossEntropyLoss()
for x, y in log_every(DataLoader(a), 10):  #: evaluation over dataloader@7; x: batch@7
    loss = crit(net(x), y)  #: statistic@7
for x, y in log_every(DataLoader(b), 10):  #: evaluation over dataloader@9; x: batch@9
    loss = crit(net(x), y)  #: statistic@9

# === parameters by name
from torch import nn, optim
net = nn.Linear(1, 1)
groups = []
for name, value in dict(net.named_parameters()).items():
    groups += [{"params": [value], "lr": 0.1}]  #: value: parameters@2
opt = optim.SGD(groups, 1)  #: optimizer

# === next as a method
from torch.utils.data import DataLoader
stream = DataLoader(data()).__iter__()
batch = stream.__next__()  #: batch@2

# === next of a list of what was made
from torch import nn
nets = iter([nn.Linear(1, 1)])
net = next(nets)  #: model@2

# === pairs of a batch that is a dictionary
from torch.utils.data import DataLoader
for batch in DataLoader(data()):
    for key, value in batch.items():
        print(value)  #: value: batch
    for value in batch.values():
        print(value)  #: value: batch

# === an object that is indexed
from torch import nn
class Nets:
    def __getitem__(self, index):
        return nn.Linear(1, 1)
for net in Nets():
    print(net)  #: net: model@4

# === a chain of as many lists as there are
from itertools import chain
from torch import nn
lists = []
for size in sizes:
    lists.append([nn.Linear(size, 1)])
for net in chain(*lists):
    print(net)  #: net: model@5

# === each object of a class runs over the loader that it holds
from torch import nn, optim
from torch.utils.data import DataLoader
class Moved:
    def __init__(self, loader):
        self.loader = loader
    def __iter__(self):
        for batch in self.loader:
            yield batch
class Paired(Moved):
    def __iter__(self):
        for x, y in self.loader:
            yield x, y
class Indexed:
    def __init__(self, loader):
        self.batches = loader
    def __getitem__(self, i):
        return next(iter(self.batches))
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1)
train = Moved(DataLoader(a))
val = Moved(DataLoader(b))
for batch in val:  #: evaluation over dataloader@21; batch: batch@21
    net(batch)
for batch in train:  #: training by optimizer@19 over dataloader@20; batch: batch@20
    net(batch).sum().backward()
    opt.step()
first = Paired(DataLoader(a))
second = Paired(DataLoader(b))
for x, y in first:  #: evaluation over dataloader@27
    net(x)
for x, y in second:  #: evaluation over dataloader@28
    net(x)
one = Indexed(DataLoader(a))
other = Indexed(DataLoader(b))
for x in other:  #: evaluation over dataloader@34
    net(x)
for x in one:  #: evaluation over dataloader@33
    net(x)

# === an object that makes the loader it runs over, beside others that it holds
from torch import nn
from torch.utils.data import DataLoader
class Rounds:
    def __init__(self, kept):
        self.kept = kept
    def __iter__(self):
        loader = DataLoader(x)
        yield from loader
net = nn.Linear(1, 1)
rounds = Rounds(DataLoader(y))
for batch in rounds:  #: evaluation over dataloader@7; batch: batch@7
    net(batch)
