# === a name stands for what it was given last
from torch import nn
net = nn.Linear(1, 1)
net = nn.Bilinear(1, 1, 1)
net(x)  #: net: model@3

# === chained assignment names one object
from torch import nn
teacher = student = nn.Linear(1, 1)
teacher.eval()  #: teacher: model@2
student.train()  #: student: model@2

# === augmented assignment keeps what was there
from torch.utils.data import DataLoader
total = 0
for x, y in DataLoader(data):
    total += x.size(0)  #: statistic, number
mean = total / 10  #: statistic, number

# === a list that grows by augmented assignment
from torch import nn
layers = [nn.Linear(1, 1)]
layers += [nn.ReLU()]
for layer in layers:  #: layer: model
    use(layer)

# === an annotated assignment
from torch import nn
net: nn.Module = nn.Linear(1, 1)  #: model@2
other: nn.Module
other = net  #: model@2

# === an annotation proves nothing
from torch import nn
import torch
def use(net: nn.Module, lr: float):
    return net  #: nothing

# === a conditional expression is either
from torch import nn, optim
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), 1) if sgd else optim.Adam(net.parameters())  #: optimizer
thing = net if flag else opt  #: model, optimizer

# === or gives a default
import torch
from torch import nn
def build(net=None):
    net = net or nn.Linear(1, 1)  #: model@4
    return net
build()

# === and hands on its last part
from torch.utils.data import DataLoader
loader = flag and DataLoader(data)  #: dataloader

# === an assignment expression binds its name
import torch
from torch import nn
if (net := nn.Linear(1, 1)) is not None:
    net.train()  #: net: model@3

# === an assignment expression in a comprehension outlives it
from torch import nn
nets = [last := nn.Linear(n, n) for n in sizes]
last.eval()  #: last: model@2

# === an assignment expression in a while loop
from torch.utils.data import DataLoader
it = iter(DataLoader(data))
while (batch := next(it, None)) is not None:
    x = batch  #: batch@2

# === del takes a name away
from torch import nn
net = nn.Linear(1, 1)
del net
net.eval()  #: net: nothing

# === a name that is rebound to something unknown is unknown
from torch import nn
model = nn.Linear(1, 1)
model = None
use(model)  #: model: nothing

# === a name that is rebound to a dictionary is one
from torch import nn
model = nn.Linear(1, 1)
model = {"state": model.state_dict()}  #: container
x = model["state"]  #: state dict@2

# === swapping two names
from torch import nn, optim
a = nn.Linear(1, 1)
b = optim.SGD(a.parameters(), 1)
a, b = b, a  #: a: optimizer, b: model
a.step()  #: a: optimizer

# === arithmetic with tensors gives tensors
import torch
noise = torch.randn(4) * 2 + 1  #: tensor
flag = noise > 0  #: tensor

# === a number is a number
import torch
steps = 3  #: number
total = steps * 2  #: number

# === a number and something unknown is unknown
import torch
steps = unheard_of * 2  #: nothing
half = 0.5 * (3 + 1)  #: number

# === membership and identity say nothing about rows
from torch.utils.data import DataLoader
for batch in DataLoader(data):
    has = "labels" in batch  #: nothing
    is_none = batch is None  #: nothing

# === an assignment expression that may not be evaluated
from torch import nn
net = nn.Linear(1, 1)
small() and (net := nn.Linear(2, 2))
use(net)  #: net: model@2, model@3
size = 1 if small() else (net := nn.Linear(3, 3))
use(net)  #: net: model@2, model@3, model@5
[last := nn.Linear(4, 4) for _ in range(3)]
use(last)  #: last: model@7
[last := nn.Linear(5, 5) for _ in range(0)]
use(last)  #: last: model@7, model@9

# === a list that grows under another name
from torch import nn
nets = [nn.Linear(1, 1)]
parts = {"nets": nets, "more": {}}
nets += [nn.Linear(2, 2)]
for net in parts["nets"]:
    use(net)  #: net: model@2, model@4
more = parts["more"]
more |= {"net": nn.Linear(3, 3)}
use(parts["more"]["net"])  #: parts['more']['net']: model@8

# === lists that are added are one list
from torch import nn
def use(one, two=None, three=None):
    print(one)  #: one: model@6, model@7
    print(two)  #: two: model@7, model@8
    print(three)  #: three: model@7, model@8
args = [nn.Linear(1, 1)]
use(*(args + [nn.Linear(2, 2)]),
    nn.Linear(3, 3))

# === a list that is taken several times
from torch import nn
net, other = [nn.Linear(1, 1)] * 2
use(other)  #: other: model@2
def use_three(one, two, three):
    print(one)  #: one: model@8
    print(two)  #: two: model@8, model@9
use_three(
    *[nn.Linear(2, 2)] * 2,
    nn.Linear(3, 3))
