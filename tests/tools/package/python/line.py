"""Workers in Python that fit a line through points of y = 2x + 1."""

import sys

import sluice
import torch


def fit(job: sluice.Job) -> None:
    line = torch.nn.Linear(1, 1)
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(line.parameters(), lr=0.1, momentum=0.5), job)
    torch.manual_seed(optimizer.index)
    for _ in range(200):
        x = torch.rand(16, 1) * 2 - 1
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(line(x), x * 2 + 1)
        loss.backward()
        optimizer.step()
    optimizer.leave()
    if job.speaks:
        print(f"y = {line.weight.item():.3f} x + {line.bias.item():.3f}")


job = sluice.start()
if job.is_server:
    sys.exit(job.serve())
fit(job)
