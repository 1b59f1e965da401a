#!/usr/bin/env python3
"""Trains with DistributedDataParallel: mpirun -n 3 python3 ddp.py. from_ddp.diff turns it into a program of Sluice."""

import os

import torch
import torch.distributed
from torch import nn

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29500")
torch.distributed.init_process_group("gloo", rank=int(os.environ["OMPI_COMM_WORLD_RANK"]),
                                     world_size=int(os.environ["OMPI_COMM_WORLD_SIZE"]))

torch.manual_seed(1)
inputs = torch.randn(3000, 20)
targets = inputs @ torch.randn(20, 1) + 3
data = torch.utils.data.TensorDataset(inputs, targets)

model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sampler = torch.utils.data.distributed.DistributedSampler(data)
loader = torch.utils.data.DataLoader(data, batch_size=20, sampler=sampler)

for epoch in range(5):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}, loss {loss.item():.4f}", flush=True)
