# === an attribute of parsed arguments is used elsewhere
import argparse, torch
def train(args):
    x = torch.zeros(3).to(args.device)  #: args.device: device@6
    return x
args = argparse.ArgumentParser().parse_args()
args.device = torch.device("cuda")
train(args)

# === a device in a dictionary
import torch
cfg = {"device": torch.device("cuda"), "lr": 0.1}
d = cfg["device"]  #: device@2
lr = cfg["lr"]  #: number

# === a dictionary made by dict
import torch
from torch import nn
cfg = dict(device=torch.device("cuda"), net=nn.Linear(1, 1))
d = cfg["device"]  #: device
n = cfg.get("net")  #: model

# === a dictionary made of pairs
from torch import nn
nets = dict([("g", nn.Linear(1, 1)), ("d", nn.Linear(2, 2))])
x = nets["g"]  #: model

# === a key that is set later
import torch
cfg = {}
cfg["device"] = torch.device("cuda")
d = cfg["device"]  #: device@3

# === a key that is not there is unknown, whatever else is
from torch import nn
cfg = {"net": nn.Linear(1, 1), "lr": missing}
lr = cfg["lr"]  #: nothing

# === an easydict
import torch
from easydict import EasyDict as edict
cfg = edict({"lr": 0.1})
cfg.device = torch.device("cuda")
d = cfg["device"]  #: device
lr = cfg.lr  #: number

# === a simple namespace
from types import SimpleNamespace
from torch import nn
box = SimpleNamespace(net=nn.Linear(1, 1), lr=0.1)
x = box.net  #: model
lr = box.lr  #: number

# === a namespace made of a dictionary
import argparse, torch
args = argparse.Namespace(**{"device": torch.device("cpu")})
d = args.device  #: device

# === vars of the arguments
import argparse, torch
args = argparse.ArgumentParser().parse_args()
args.device = torch.device("cuda")
d = vars(args)["device"]  #: device
vars(args)["flag"] = torch.cuda.is_available()
f = args.flag  #: accelerator flag

# === parse_known_args gives two things
import argparse, torch
args, rest = argparse.ArgumentParser().parse_known_args()  #: args: holder
args.device = torch.device("cuda")
d = args.device  #: device

# === setdefault and update
from torch import nn, optim
parts = {"net": nn.Linear(1, 1)}
parts.update({"opt": optim.SGD([], 1)}, extra=nn.ReLU())
o = parts["opt"]  #: optimizer
e = parts["extra"]  #: model
x = parts.setdefault("net", None)  #: model

# === merging dictionaries
from torch import nn, optim
a = {"net": nn.Linear(1, 1)}
b = {**a, "opt": optim.SGD([], 1)}
n = b["net"]  #: model
o = b["opt"]  #: optimizer

# === any key
from torch.utils.data import DataLoader
loaders = {"train": DataLoader(a), "val": DataLoader(b)}
for phase in ["train", "val"]:  #: phase: text
    for x in loaders[phase]:  #: evaluation over dataloader@2
        use(x)

# === a comprehension over names
from torch.utils.data import DataLoader
loaders = {name: DataLoader(sets[name]) for name in ["train", "val"]}
for x in loaders["train"]:  #: evaluation over dataloader@2#2; x: batch
    use(x)

# === the keys of a dictionary are not what it holds
from torch.utils.data import DataLoader
loaders = {"train": DataLoader(a)}
for name in loaders:  #: neither; name: nothing
    for x in loaders[name]:  #: evaluation over dataloader@2
        use(x)

# === keys, values and items
from torch import nn
nets = {"g": nn.Linear(1, 1), "d": nn.Linear(2, 2)}
for net in nets.values():  #: net: model
    net.train()
for name, net in nets.items():  #: net: model
    net.eval()
for name in nets.keys():  #: name: nothing
    nets[name].eval()  #: nets[name]: model

# === an attribute of a class is shared
import torch
class Config:
    device = torch.device("cuda")
    lr: float = 0.1
d = Config.device  #: device
l = Config().lr  #: number
Config.device = torch.device("cpu")
e = Config.device  #: device

# === an attribute that is given from outside
from torch import nn
class Trainer:
    def fit(self):
        return self.net  #: model@6
trainer = Trainer()
trainer.net = nn.Linear(1, 1)
trainer.fit()

# === setattr and getattr with the same name
import torch
class Box: pass
box = Box()
setattr(box, "device", torch.device("cuda"))
d = box.device  #: device
e = getattr(box, "device", None)  #: device

# === getattr with a name that is put together
from torch import nn
class GAN:
    def __init__(self):
        self.net_g = nn.Linear(1, 1)
        self.net_d = nn.Linear(2, 2)
        self.steps = 3
    def nets(self, k):
        a = getattr(self, "net_" + k)  #: model
        b = getattr(self, f"net_{k}")  #: model
        c = getattr(self, "net_%s" % k)  #: model
        return [a, b, c]
GAN().nets(name)

# === what is put under a key that is not known may be under any
from torch import nn, optim
parts = {"net": nn.Linear(1, 1)}
parts[key] = optim.SGD([], 1)
x = parts["net"]  #: model, optimizer

# === a configuration that is a module-level dictionary
import torch
CONFIG = {"train": {"device": torch.device("cuda")}}
def use():
    d = CONFIG["train"]["device"]  #: device
    return d
use()

# === what a file of settings has under a name only the user knows, unless the program puts something there
import yaml, torch
cfg = yaml.safe_load(open("x.yaml"))
cfg["device"] = torch.device("cuda")
d = cfg["device"]  #: device
net = cfg["net"]  #: bound method
lr = cfg["train"]["lr"]  #: bound method
name = cfg["train"].get("name", "cuda")  #: bound method, text
first = cfg["layers"][0]  #: nothing
cfg["place"] = "cpu"
place = cfg["place"]  #: bound method, text
key = input()
any_of_them = cfg[key]  #: device, text

# === the command line by its mapping
import argparse
args = argparse.ArgumentParser().parse_args()
opts = vars(args)
device = opts["device"]  #: bound method
copied = dict(opts)["device"]  #: bound method
by_dict = args.__dict__["device"]  #: bound method

# === a dictionary of the program's has what the program puts there
cfg = {"lr": 1}
device = cfg["device"]  #: nothing

# === what is put into a batch does not go into its loader
import torch
from torch.utils.data import DataLoader
loader = DataLoader(data)
for batch in loader:
    batch["noise"] = torch.device("cuda")
    batch.weight = torch.device("cuda")
n = loader["noise"]  #: nothing
w = batch.weight  #: bound method

# === parameter groups that are added
from torch import nn, optim
net, head = nn.Linear(1, 1), nn.Linear(1, 1)
optimizer = optim.SGD(net.parameters(), 1)
optimizer.add_param_group({"params": head.parameters()})
state = optimizer.state_dict()  #: state dict@3

# === the parts of a model by name
from torch import nn
net = nn.Sequential(nn.Linear(1, 1))
for part in net._modules.values():
    print(part)  #: part: parameters@2

# === what is put in order holds no less
from torch import nn
from torch.utils.data import DataLoader
batches = list(DataLoader(data()))
batches.sort()
first = batches[0]  #: batch@3
nets = list((nn.Linear(1, 1), nn.Linear(2, 2)))
print(nets[1])  #: nets[1]: model@6

# === a dictionary of what are no pairs
from torch import nn
nets = dict([nn.Linear(1, 1)])
print(nets["a"])  #: nets["a"]: nothing

# === what stands behind an item that is taken out moves
from torch import nn
nets = [nn.Linear(1, 1), None]
nets[1] = nn.Linear(2, 2)
del nets[0]
use(nets[0])  #: nets[0]: model@2, model@3

# === a list that is emptied and filled again
from torch import nn
nets = [nn.Linear(1, 1)]
nets.clear()
nets.append(nn.Linear(2, 2))
use(nets[0])  #: nets[0]: model@2, model@4

# === a slice that is replaced
from torch import nn
nets = [nn.Linear(1, 1)]
nets[:] = [nn.Linear(2, 2)]
use(nets[0])  #: nets[0]: model@2, model@3

# === a list in another order
import random
from torch import nn
first = nn.Linear(1, 1)
nets = [first, nn.Linear(2, 2)]
random.shuffle(nets)
use(nets[0])  #: nets[0]: model@3, model@4
