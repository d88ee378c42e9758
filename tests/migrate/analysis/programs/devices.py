# === a device by availability
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  #: device
name = "cuda" if torch.cuda.is_available() else "cpu"  #: text

# === an availability flag
import torch
use_cuda = not args.no_cuda and torch.cuda.is_available()  #: accelerator flag
many = torch.cuda.device_count() > 1  #: nothing
if use_cuda:  #: accelerator flag
    torch.zeros(1).cuda()

# === the text of a numbered device
import torch
i = 3
a = f"cuda:{i}"  #: text(cuda:<any>)
b = "cuda:%d" % i  #: text(cuda:<any>)
c = "cuda:" + str(i)  #: text(cuda:<any>)

# === a text of which nothing is known
import torch
a = f"{kind}:{i}"  #: nothing
b = "{}:{}".format(kind, i)  #: text

# === a device from the arguments
import argparse, torch
parser = argparse.ArgumentParser()
args = parser.parse_args()
args.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def train(args):
    return torch.zeros(3, device=args.device)  #: args.device: device@4
train(args)

# === a device in a class
import torch
class Trainer:
    def __init__(self, device=None):
        self.device = device or torch.device("cpu")  #: device
    def fit(self):
        return torch.ones(1).to(self.device)  #: self.device: device
Trainer(torch.device("cuda")).fit()

# === a device of a parameter
import torch
from torch import nn
net = nn.Linear(1, 1)
d = next(net.parameters()).device  #: bound method

# === a tensor on a device is a tensor
import torch
x = torch.zeros(3).to("cuda")  #: tensor
