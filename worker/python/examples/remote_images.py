#!/usr/bin/env python3
"""Trains LeNet on Fashion-MNIST in trainers that hold no parameters: rank 0 computes forward and backward for them.

    mpirun --bind-to none -n 3 python3 remote_images.py       rank 0 has the model, two trainers have the data

The design is that of PyTorch's tutorial on RPC parameter servers.
"""

import argparse
import sys

import sluice
import torch
from fashion import FOLDER, LeNet, accuracy, load
from torch import nn


class ParameterServer(LeNet):
    def error_rates(self, images, labels):
        """For each class how many of these images the model takes for another one."""
        wrong = self(images).argmax(1) != labels
        return torch.bincount(labels[wrong], minlength=10) / torch.bincount(labels, minlength=10).clamp(min=1)


def serve(job, flags):
    torch.manual_seed(1)
    model = ParameterServer()
    sgd = torch.optim.SGD(model.parameters(), lr=flags.learning_rate, momentum=flags.momentum)
    return sluice.serve_module(job, model, sgd, at=flags.at, methods=["error_rates"])


def train(job, flags):
    images, labels = load(flags.data_dir, "train")
    model = sluice.RemoteModule(job, flags.at)
    sampler = sluice.DistributedSampler(images, flags.batch_size, model)
    for step, rows in enumerate(sampler, 1):
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        if step == 1 and job.rank == 0:
            norms = {name: gradient.norm().item() for name, gradient in model.gradients().items()}
            print("norms of the first gradient:", {name: round(norm, 3) for name, norm in norms.items()}, flush=True)
        model.step(samples=len(rows), loss=loss)
        if job.rank == 0 and step % 100 == 0:
            print(f"step {model.last.step}, loss {loss.item():.4f}", flush=True)
        if step == flags.max_steps:
            break
    if job.rank != 0:
        return
    model.await_end()
    images, labels = load(flags.data_dir, "t10k")
    print(f"test accuracy {accuracy(model, images, labels):.4f}", flush=True)
    rates = model.call("error_rates", images[:2000], labels[:2000])
    print("wrong of each class:", [round(rate, 2) for rate in rates.tolist()], flush=True)


def main():
    job = sluice.start()
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", default="127.0.0.1:7072", help="where trainers find the model: host:port or unix:/path")
    parser.add_argument("--data-dir", default=FOLDER)
    parser.add_argument("--max-steps", type=int, default=0, help="end after so many batches; 0: after an epoch")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--batch-size", type=int, default=32)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    return serve(job, flags) if job.is_server else train(job, flags)


if __name__ == "__main__":
    sys.exit(main())
