# === a comprehension over keys that are written out makes an object for each
from torch.utils.data import DataLoader
loaders = {k: DataLoader(data[k]) for k in ["train", "val"]}
a = loaders["train"]  #: dataloader@2#2
b = loaders["val"]  #: dataloader@2#3
c = loaders["test"]  #: nothing
d = loaders[name]  #: dataloader@2#2, dataloader@2#3

# === over keys and items that are zipped
from torch.utils.data import DataLoader, TensorDataset
first, second = TensorDataset(x, y), TensorDataset(x, z)
loaders = {k: DataLoader(each) for k, each in zip(("train", "val"), (first, second))}
a = loaders["train"].dataset  #: dataset@2
b = loaders["val"]  #: dataloader@3#3
c = {k: DataLoader(each) for k, each in zip(("train", "val"), sets)}["val"]  #: dataloader@6

# === keys and items that are zipped become a dictionary
from torch.utils.data import DataLoader
first = DataLoader(x)
second = DataLoader(y)
a = dict(zip(("train", "val"), (first, second)))["val"]  #: dataloader@3
b = dict([("train", first), ("val", second)])["train"]  #: dataloader@2
c = dict(zip(names, (first, second)))["val"]  #: dataloader@2, dataloader@3
d = dict(zip(("train", "val"), (first, second)), train=second)["val"]  #: dataloader@3

# === over a list by its name
from torch.utils.data import DataLoader
names = ("train", "val")
loaders = {k: DataLoader(data[k]) for k in names}
b = loaders["val"]  #: dataloader@3#3

# === over a name that is given two lists
from torch.utils.data import DataLoader
names = ["train", "val"]
if small:
    names = ["train"]
loaders = {k: DataLoader(data[k]) for k in names}
b = loaders["val"]  #: dataloader@5

# === over a list that is longer than it is written
from torch.utils.data import DataLoader
names = ["train"]
names.append("val")
loaders = {k: DataLoader(data[k]) for k in names}
b = loaders["val"]  #: dataloader@4

# === over keys that a function is handed
from torch.utils.data import DataLoader
def make(names):
    return {k: DataLoader(data[k]) for k in names}
loaders = make(["train", "val"])
b = loaders["val"]  #: dataloader@3

# === over the keys of a dictionary that keys make, and each has its own item
from torch.utils.data import DataLoader, TensorDataset
sets = {k: TensorDataset(x, y) for k in ["train", "val"]}
loaders = {k: DataLoader(sets[k]) for k in sets}
a = loaders["train"].dataset  #: dataset@2#2
b = {k: each for k, each in sets.items()}["val"]  #: dataset@2#2, dataset@2#3
c = {k: DataLoader(each) for k, each in sets.items()}["val"].dataset  #: dataset@2#3

# === a loop that fills a dictionary, with a branch for each key
from torch.utils.data import DataLoader
loaders = {}
for split in ["train", "val", "test"]:
    if split == "train":
        loader = DataLoader(data, shuffle=True)
    elif split in ("val", "dev"):
        loader = DataLoader(data)
    else:
        loader = None
    loaders[split] = loader
a = loaders["train"]  #: dataloader@5#2
b = loaders["val"]  #: dataloader@7#2
c = loaders["test"]  #: nothing

# === each round calls a function that makes something
from torch.utils.data import DataLoader
def make(kind):
    return DataLoader(data[kind])
loaders = {kind: make(kind) for kind in ("train", "val")}
a = loaders["train"]  #: dataloader@3
b = loaders["val"]  #: dataloader@3#2

# === calls of a function that fills a dictionary
from torch.utils.data import DataLoader
def make(kinds):
    found = {}
    for kind in ["train", "val"]:
        if kind in kinds:
            found[kind] = DataLoader(data[kind])
    return found
a = make(["train"])["train"]  #: dataloader@6#2
b = make(["val"])["val"]  #: dataloader@6#5

# === a loop that trains is run as loops are
from torch import nn, optim
from torch.utils.data import DataLoader
loaders = {}
for kind in ["a", "b"]:
    loaders[kind] = DataLoader(data[kind])
    net = nn.Linear(1, 1)  #: model@6
    opt = optim.SGD(net.parameters(), lr=0.1)
    for x in loaders[kind]:  #: training by optimizer@7 over dataloader@5
        net(x).sum().backward()
        opt.step()

# === layers under keys are parts of their model
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({k: nn.Linear(1, 1) for k in ["a", "b"]})
        x = {k: nn.Linear(1, 1) for k in ["a", "b"]}["a"]  #: model@6
net = Net()  #: model
