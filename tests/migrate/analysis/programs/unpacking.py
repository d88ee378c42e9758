# === a pair
from torch import nn, optim
def build():
    net = nn.Linear(1, 1)
    return net, optim.SGD(net.parameters(), 1)
a, b = build()  #: a: model@3, b: optimizer@4

# === nested
from torch import nn
from torch.utils.data import DataLoader
(net, (train, test)) = nn.Linear(1, 1), (DataLoader(a), DataLoader(b))  #: net: model, train: dataloader, test: dataloader

# === a star takes the middle
from torch import nn, optim
net = nn.Linear(1, 1)
first, *middle, last = net, 1, 2, optim.SGD(net.parameters(), 1)  #: first: model, middle: container, last: optimizer
n = middle[0]  #: number

# === a star at the front
from torch import nn, optim
from torch.utils.data import DataLoader
*loaders, net = DataLoader(a), DataLoader(b), nn.Linear(1, 1)  #: loaders: container, net: model
for x in loaders[1]:  #: evaluation over dataloader@3
    use(x)

# === a star in a list makes the later positions unknown
from torch import nn, optim
nets = [nn.Linear(1, 1)]
all = [*nets, optim.SGD(nets[0].parameters(), 1)]
x = all[0]  #: model, optimizer

# === the parts of a batch
from torch.utils.data import DataLoader
for batch in DataLoader(data):
    images, *rest = batch  #: images: batch, rest: batch
    labels, index = rest  #: labels: batch, index: batch

# === a position that is unknown stays so
from torch import nn
a, b = unknown(), nn.Linear(1, 1)  #: a: unknown object, b: model
first, *rest = (missing, b)  #: first: nothing, rest: container
x = rest[0]  #: model

# === in a for loop
from torch import nn, optim
net = nn.Linear(1, 1)
for name, (m, o) in [("a", (net, optim.SGD(net.parameters(), 1)))]:  #: neither; name: text(a), m: model, o: optimizer
    o.step()

# === pairs of a list of tuples
from torch import nn
for net, weight in [(nn.Linear(1, 1), 0.1), (nn.ReLU(), 0.2)]:  #: net: model, weight: number
    net(weight)

# === into attributes and items
from torch import nn, optim
class Holder: pass
h = Holder()
d = {}
h.net, d["opt"] = nn.Linear(1, 1), optim.SGD([], 1)  #: h.net: model
x = h.net  #: model
y = d["opt"]  #: optimizer

# === a list target
from torch import nn
[net, n] = [nn.Linear(1, 1), 4]  #: net: model, n: number

# === a result of a model with two parts
from torch import nn
from torch.utils.data import DataLoader
net = nn.LSTM(1, 1)
for x in DataLoader(data):
    out, (h, c) = net(x)  #: out: samples, h: samples

# === a star in the middle of an unknown number
from torch import nn
nets = [nn.Linear(1, 1) for _ in range(3)]
first, *middle, last = nets  #: first: model, last: model
for net in middle:
    print(net)  #: net: model

# === a dictionary that is unpacked gives its keys
from torch import nn
a, b = {"one": nn.Linear(1, 1), "two": nn.Linear(1, 1)}  #: a: nothing, b: nothing

# === the target of a loop may be an attribute
from torch import nn
class Trainer:
    def run(self, nets):
        for self.net, (self.number, *self.rest) in zip(nets, pairs()):
            self.show()
    def show(self):
        print(self.net)  #: self.net: model
Trainer().run([nn.Linear(1, 1)])

# === keyword arguments out of a dictionary whose keys are not known
from torch import nn
def use(net, head=None):  #: net: model, head: model
    return net
nets = {}
for name in names():
    nets[name] = nn.Linear(1, 1)
net = use(**nets)  #: model

# === a model is given a batch of keyword arguments
from torch.utils.data import DataLoader
from torch import nn
model = nn.Transformer()
for batch in DataLoader(data()):
    out = model(**batch)  #: samples

# === a dictionary made of a batch
from torch.utils.data import DataLoader
for batch in DataLoader(data()):
    both = {**batch, "epoch": 1}
    x = both["x"]  #: batch

# === the target of a loop may be an item
from torch import nn
best = {}
for best["net"] in [nn.Linear(1, 1)]:
    print(best["net"])  #: best["net"]: model@3

# === of what a function gives in a tuple each call gets what it has passed in
from torch import nn
def load(model, path):
    return model, len(path)
first = nn.Linear(1, 1)
second = nn.Linear(1, 1)
first, epoch = load(first, "a")  #: first: model@4
second, epoch = load(second, "b")  #: second: model@5

# === what earlier calls have left somewhere may be in the tuple
from torch import nn
kept = []
def load(model, path):
    kept.append(model)
    return kept[0], model
first = nn.Linear(1, 1)
second = nn.Linear(1, 1)
first, last = load(first, "a")
second, last = load(second, "b")  #: second: model@6, model@7
