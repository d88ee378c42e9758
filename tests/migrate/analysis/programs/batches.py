# === the parts of a batch on a device
import torch
from torch.utils.data import DataLoader
device = torch.device("cuda")
for images, labels in DataLoader(data):  #: evaluation over dataloader@4; images: batch, labels: batch
    images = images.to(device, non_blocking=True)  #: batch
    labels = labels.cuda().long()  #: batch

# === a tensor that is compared with a batch is computed from it
# --- main.py
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.ones(4, 2), torch.ones(4)), batch_size=2)
other = torch.ones(2)
for x, y in loader:
    right = other.eq(y).sum()  #: statistic@3
    copied = other.clone()  #: tensor
    same = other.eq(copied)  #: tensor

# === a variable
import torch
from torch.autograd import Variable
from torch.utils.data import DataLoader
for x, y in DataLoader(data):
    x = Variable(x.cuda(), requires_grad=False)  #: batch

# === a dictionary
from torch.utils.data import DataLoader
for batch in DataLoader(data):
    x = batch["x"].to("cuda")  #: batch
    y = batch.get("y")  #: batch
    for key, value in batch.items():  #: neither; value: batch
        use(value)

# === a dictionary that is moved
from torch.utils.data import DataLoader
for batch in DataLoader(data):
    batch = {k: v.to("cuda") for k, v in batch.items()}  #: batch
    y = batch["y"]  #: batch

# === a list that is moved
from torch.utils.data import DataLoader
for batch in DataLoader(data):
    batch = [t.cuda() for t in batch]  #: batch
    x, y = batch  #: x: batch, y: batch
    u, v = (t.cuda() for t in batch)  #: u: batch, v: batch
    w = tuple(t.to("cuda") for t in batch)  #: batch

# === a function that moves
from torch.utils.data import DataLoader
def move(batch, device):
    return {k: v.to(device) for k, v in batch.items()}
for batch in DataLoader(data):
    batch = move(batch, "cuda")  #: batch
    x = batch["x"]  #: batch

# === a function that moves whatever it gets
import torch
from torch.utils.data import DataLoader
def move(x, device):
    if isinstance(x, dict):
        return {k: move(v, device) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [move(v, device) for v in x]
    return x.to(device)
for batch in DataLoader(data):
    batch = move(batch, "cuda")  #: batch

# === a model gives rows, a loss none
from torch import nn
from torch.utils.data import DataLoader
net, crit = nn.Linear(1, 1), nn.CrossEntropyLoss()
for x, y in DataLoader(data):
    out = net(x)  #: samples@4
    loss = crit(out, y)  #: statistic@4
    number = loss.item()  #: statistic@4
    pred = out.argmax(dim=1)  #: samples
    correct = (pred == y).sum().item()  #: statistic

# === the size of a batch
from torch.utils.data import DataLoader
for x, y in DataLoader(data):
    a = x.size(0)  #: statistic
    b = x.shape[0]  #: statistic
    c = len(x)  #: statistic

# === a model that takes a dictionary
from transformers import AutoModelForSequenceClassification
from torch.utils.data import DataLoader
net = AutoModelForSequenceClassification.from_pretrained("x")  #: model
for batch in DataLoader(data):
    out = net(**batch)  #: samples
    loss = out.loss  #: statistic

# === a model of the project
import torch.nn as nn
from torch.utils.data import DataLoader
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(1, 1)  #: model
    def forward(self, x):  #: x: batch
        return self.body(x)
net = Net()  #: model
for x, y in DataLoader(data):
    out = net(x)  #: samples@10

# === a step in a function
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
def step(net, opt, x, y):
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss.item()  #: statistic
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1)
for x, y in DataLoader(data):  #: training by optimizer@10 over dataloader@11
    loss = step(net, opt, x, y)  #: statistic@11

# === one function for training and test batches
from torch import nn
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
def predict(batch):
    return net(batch)
for x in DataLoader(a):
    out = predict(x)  #: samples@6
for x in DataLoader(b):
    out = predict(x)  #: samples@8

# === one loop for both phases
from torch import nn, optim
from torch.utils.data import DataLoader
loaders = {"train": DataLoader(a), "val": DataLoader(b)}
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1)
for phase in ["train", "val"]:
    for x in loaders[phase]:  #: training by optimizer@5 over dataloader@3
        loss = net(x).mean()
        if phase == "train":
            loss.backward()
            opt.step()

# === one function that runs over what it is given
from torch import nn
from torch.utils.data import DataLoader
def run(net, loader):
    for x in loader:  #: evaluation over dataloader@8, dataloader@9
        out = net(x)
    return out
net = nn.Linear(1, 1)
a = run(net, DataLoader(x))  #: samples@8
b = run(net, DataLoader(y))  #: samples@9

# === parts in a list of results
from torch import nn
from torch.utils.data import DataLoader
import torch
net = nn.Linear(1, 1)
preds = []
for x, y in DataLoader(data):
    preds.append(net(x))
all = torch.cat(preds)  #: samples@6

# === a meter
from torch import nn
from torch.utils.data import DataLoader
class Meter:
    def __init__(self):
        self.sum = self.count = 0
    def update(self, value, n=1):
        self.sum += value * n
        self.count += n
    @property
    def avg(self):
        return self.sum / self.count
net = nn.Linear(1, 1)
meter = Meter()
for x in DataLoader(data):
    meter.update(net(x).mean().item(), x.size(0))
mean = meter.avg  #: number, statistic

# === a batch of a trainer
from torch import nn
from torch.utils.data import DataLoader
class Trainer:
    def __init__(self):
        self.net = nn.Linear(1, 1)
    def set_input(self, batch):
        self.x = batch["x"].cuda()  #: batch
    def forward(self):
        self.out = self.net(self.x)  #: samples@12

trainer = Trainer()
for batch in DataLoader(data):
    trainer.set_input(batch)
    trainer.forward()

# === noise beside a batch
import torch
from torch import nn
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
for x in DataLoader(data):
    z = torch.randn(x.size(0), 100)  #: tensor
    fake = net(torch.randn(4, 100))  #: tensor

# === mixing
import torch
from torch.utils.data import DataLoader
for x, y in DataLoader(data):
    index = torch.randperm(8)  #: tensor
    mixed = 0.5 * x + 0.5 * x[index]  #: samples

# === a model that is given parts of a batch in a list
from torch import nn
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
for x, y in DataLoader(data):
    out = net([x.float(), y])  #: statistic
    rows = net(x, [y])  #: samples

# === functions of torch under other names fold the rows like its own
import torch as th
from torch import mean
from torch.utils.data import DataLoader
for x in DataLoader(data):
    total = th.sum(x)  #: statistic
    middle = mean(x)  #: statistic
    each = th.sum(x, 1)  #: samples
    row = mean(x, dim=-1)  #: samples
    flat = th.sum(x, 0)  #: statistic
