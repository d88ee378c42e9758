# === library constructors
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(2, 2)  #: model@4
opt = optim.SGD(net.parameters(), lr=0.1)  #: optimizer
loader = DataLoader(data)  #: dataloader
crit = nn.CrossEntropyLoss()  #: loss function
sched = torch.optim.lr_scheduler.StepLR(opt, 1)  #: scheduler
dev = torch.device("cuda")  #: device
