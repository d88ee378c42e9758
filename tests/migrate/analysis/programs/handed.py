# Functions that are handed to a library, which calls them.

# === spawned processes
import torch.multiprocessing as mp
from torch import nn
def work(rank, n, net):  #: rank: local rank, n: number, net: model@5
    return net
mp.spawn(work, nprocs=2, args=(2, nn.Linear(1, 1)))

# === spawned with a tuple under a name
import torch
from torch import nn
def work(rank, net):  #: rank: local rank, net: model@5
    return net
args = (nn.Linear(1, 1),)
torch.multiprocessing.spawn(work, args, 2)

# === spawned by a function that is told what to spawn
import torch.multiprocessing as mp
from torch import nn
def launch(fn, *args):
    mp.spawn(fn, args=args, nprocs=2)
def work(rank, net):  #: rank: local rank, net: model@7
    return net
launch(work, nn.Linear(1, 1))

# === a thread
import threading
from torch import nn
def work(net, other, last=None):  #: net: model@5, other: text(cuda), last: number
    return net
threading.Thread(target=work, args=(nn.Linear(1, 1),), kwargs={"other": "cuda", "last": 3}).start()

# === processes, also by a context
import multiprocessing
import torch.multiprocessing as mp
from torch import nn
def work(net):  #: net: model@7, model@8
    return net
context = mp.get_context("spawn")
children = [context.Process(target=work, args=(nn.Linear(1, 1),)) for _ in range(len(names))]
multiprocessing.Process(None, work, "child", [nn.Linear(2, 2)]).start()

# === a launcher in a notebook
from accelerate import notebook_launcher
from torch import nn
def train(net, epochs):  #: net: model@5, epochs: number
    return net
notebook_launcher(train, (nn.Linear(1, 1), 3), num_processes=2)

# === a pool
from multiprocessing import Pool
from torch import nn
def build(n):  #: n: number
    return nn.Linear(n, n)
with Pool(2) as pool:
    for net in pool.map(build, [1, 2]):  #: net: model@4
        net.train()
    one = pool.apply(build, (3,))  #: model
    later = pool.apply_async(build, (3,)).get()  #: model

# === an executor
from concurrent.futures import ThreadPoolExecutor, as_completed
from torch import nn
def build(kind, n):  #: kind: class, n: number
    return kind(n, n)
class Net(nn.Linear):
    pass
with ThreadPoolExecutor() as executor:
    futures = [executor.submit(build, Net, n=3) for _ in range(2)]
    for future in as_completed(futures):
        net = future.result()  #: model@4

# === reduce
import functools
from torch import nn
def chain(one, other):  #: one: model@5, other: model@5
    return nn.Sequential(one, other)
net = functools.reduce(chain, [nn.Linear(1, 1), nn.Linear(1, 1)])  #: model@4

# === a key to sort by
from torch import nn
nets = sorted([nn.Linear(1, 1)], key=lambda net: net.weight.sum())  #: container

# === what a loader calls
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 3
    def __getitem__(self, index):
        return torch.rand(3), nn.Linear(1, 1)
def collate(items):
    first = items[0]  #: container@8
    return first[1]  #: model@8
def seed(worker):  #: worker: number
    torch.manual_seed(worker)
for batch in DataLoader(Data(), collate_fn=collate, worker_init_fn=seed):  #: batch: batch@14
    pass

# === an object that collates
import torch
from torch.utils.data import DataLoader
class Collate:
    def __call__(self, items):  #: items: container
        return torch.stack(items)
loader = DataLoader(data, 4, collate_fn=Collate())  #: dataloader

# === a schedule
from torch import nn, optim
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1)
def rate(epoch):  #: epoch: number
    return 1 / (epoch + 1)
scheduler = optim.lr_scheduler.LambdaLR(opt, lr_lambda=[rate])  #: scheduler

# === weights and hooks
from torch import nn
def init(module):  #: module: nothing
    nn.init.zeros_(module.weight)
def hook(module, given, out):
    return out
net = nn.Linear(1, 1).apply(init)  #: model
net.register_forward_hook(hook)

# === recomputed in the backward pass
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
def block(x, flag):  #: x: batch, flag: number
    return net(x)
for x in DataLoader(data):
    y = checkpoint(block, x, 1, use_reentrant=False)  #: samples@7

# === functions of functions
import torch
from torch import nn
def build(n):  #: n: number
    return nn.Linear(n, n)
fast = torch.compile(build)  #: function
net = fast(3)  #: model@4
other = torch.jit.script(build)(4)  #: model

# === a search that trains
import optuna
from torch import nn, optim
from torch.utils.data import DataLoader
def objective(trial):  #: trial: nothing
    net = nn.Linear(1, 1)
    opt = optim.SGD(net.parameters(), trial.suggest_float("lr", 0, 1))
    for x in DataLoader(data):  #: training by optimizer@6 over dataloader@7
        net(x).sum().backward()
        opt.step()
    return 1.0
study = optuna.create_study()
study.optimize(objective, n_trials=3)

# === a sweep
import wandb
from ray import tune
from torch import nn
def train():
    return nn.Linear(1, 1)
def trainable(config, net):  #: config: holder, net: nothing
    return config["lr"]
wandb.agent("id", function=train, count=3)
tune.run(trainable, config={"lr": 1})

# === a partial function that is handed over
import functools
import torch.multiprocessing as mp
from torch import nn
def work(net, rank, n):  #: net: model@6, rank: local rank, n: number
    return net
mp.spawn(functools.partial(work, nn.Linear(1, 1)), args=(2,))

# === a method that is handed over
import threading
from torch import nn
class Trainer:
    def __init__(self):
        self.net = nn.Linear(1, 1)
    def run(self, epochs):  #: self: instance@9, epochs: number
        return self.net  #: model@5
trainer = None
threading.Thread(target=Trainer().run, args=[3]).start()

# === at the end of the program
import atexit, signal
from torch import nn
def save(net):  #: net: model@5
    return net
atexit.register(save, nn.Linear(1, 1))
def stop(number, frame):  #: number: nothing, frame: nothing
    pass
signal.signal(signal.SIGTERM, stop)

# === what is not called is not called
import torch
from torch import nn
def work(net):  #: net: nothing
    return net.cuda()
remember(work, nn.Linear(1, 1))

# === a loader asks for items by number
import torch
from torch.utils.data import DataLoader, Dataset, Subset
class Data(Dataset):
    def __len__(self):
        return 3
    def __getitem__(self, index):  #: self: dataset@8, index: number
        return torch.rand(3)
loader = DataLoader(Subset(Data(), [0, 1]), 2)

# === a sampler may ask for anything
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __getitem__(self, key):  #: key: nothing
        return torch.rand(3)
loader = DataLoader(Data(), batch_sampler=groups)
