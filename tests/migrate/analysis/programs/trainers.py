# Objects that train.
# === a trainer that is given everything
from torch import nn, optim
from torch.utils.data import DataLoader
class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
    def fit(self):
        for epoch in range(3):
            self.epoch()
    def epoch(self):
        for x, y in self.loader:  #: training by optimizer@18 over dataloader@19; x: batch
            loss = self.model(x).sum()  #: statistic
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(data)
Trainer(net, opt, loader).fit()

# === a base that trains what its subclass makes
# --- main.py
from runs import Run
run = Run()
run.fit()
# --- base.py
class Base:
    def __init__(self):
        self.model = self.make_model()  #: model@runs.py:6
        self.loader = self.make_loader()  #: dataloader@runs.py:8
        self.optimizer = self.make_optimizer()  #: optimizer@runs.py:10
    def fit(self):
        for x in self.loader:
            self.model(x).sum().backward()
            self.optimizer.step()
        for x in self.loader:  #: evaluation over dataloader@runs.py:8
            self.model(x)
# --- runs.py
from base import Base
from torch import nn, optim
from torch.utils.data import DataLoader
class Run(Base):
    def make_model(self):
        return nn.Linear(1, 1)
    def make_loader(self):
        return DataLoader(data)
    def make_optimizer(self):
        return optim.SGD(self.model.parameters(), lr=0.1)

# === a step that the subclass defines
from torch import nn, optim
from torch.utils.data import DataLoader
class Base:
    def __init__(self, model, loader):
        self.model = model
        self.loader = loader
        self.optimizer = optim.SGD(model.parameters())
    def fit(self):
        for batch in self.loader:  #: training by optimizer@7 over dataloader@20
            self.step(batch)
    def step(self, batch):
        raise NotImplementedError
class Run(Base):
    def step(self, batch):
        b = batch  #: batch@20
        loss = self.model(b).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
Run(nn.Linear(1, 1), DataLoader(data)).fit()

# === two objects of one class are kept apart
from torch import nn
class Holder:
    def __init__(self, model, other=None):
        self.model = model
        self.other = other
a = Holder(nn.Linear(1, 1))
b = Holder(nn.Bilinear(1, 1, 1), other=nn.MSELoss())
x = a.model  #: model@6
y = b.model  #: model@7
z = b.other  #: loss function

# === two objects are kept apart through their base
from torch import nn
class Base:
    def __init__(self, model):
        self.model = model
class Run(Base):
    def __init__(self, net, name):
        super().__init__(net)
        self.name = name
a = Run(nn.Linear(1, 1), "a")
b = Run(nn.Bilinear(1, 1, 1), "b")
x = a.model  #: model@9
y = b.model  #: model@10
n = b.name  #: text(b)

# === a trainer of a package, called by a script
# --- main.py
import torch
from lib.trainers import Trainer
from torch import nn
Trainer(nn.Linear(1, 1), "cuda").fit(None)
# --- lib/__init__.py
# --- lib/trainers/__init__.py
from .plain import Trainer
# --- lib/trainers/plain.py
from torch import optim
class Trainer:
    def __init__(self, model, device):
        self.device = device  #: text(cuda)
        self.model = model.to(self.device)  #: model@main.py:4
        self.optimizer = optim.SGD(self.model.parameters())
    def fit(self, data):
        o = self.optimizer  #: optimizer@6

# === methods that nobody is seen to call
from torch import nn
class Run:
    def __init__(self):
        self.net = nn.Linear(1, 1)
    def fit(self):
        m = self.net  #: model
        m(x).sum().backward()
run = Run()

# === methods of a base that nobody is seen to call
from torch import nn
class Base:
    def fit(self):
        m = self.net  #: model
        m(x).sum().backward()
class Run(Base):
    def __init__(self):
        self.net = nn.Linear(1, 1)
run = Run()

# === hooks that call what the subclass has
from torch import nn, optim
class Hooks:
    def before(self):
        pass
    def run(self, net):
        self.before()
        self.opt = self.configure(net)
        o = self.opt  #: optimizer
class Mine(Hooks):
    def configure(self, net):
        return optim.SGD(net.parameters())
    def run(self):
        net = nn.Linear(1, 1)
        super().run(net)
Mine().run()
