#!/usr/bin/python3
"""Trains through PyTorch RPC: the model is on rank 0, and the other ranks are trainers without parameters.

It has the structure of PyTorch's tutorial "Implementing a Parameter Server Using Distributed RPC Framework": forward is
a remote call, dist_autograd crosses the wire, and DistributedOptimizer takes the steps on the server.
"""

import argparse
import gzip
import os
import time

import numpy
import torch
import torch.distributed.autograd as dist_autograd
import torch.multiprocessing
from torch import nn
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer
from torch.nn import functional

SERVER = "server"
MEAN, DEVIATION = 0.2860, 0.3530  # of Fashion-MNIST's pixels


class TutorialNet(nn.Module):
    """The tutorial's network for images of 28 x 28."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images):
        hidden = functional.max_pool2d(functional.relu(self.conv2(functional.relu(self.conv1(images)))), 2)
        hidden = torch.flatten(self.dropout1(hidden), 1)
        return self.fc2(self.dropout2(functional.relu(self.fc1(hidden))))


class LeNet(nn.Module):
    """The LeNet of sluice_train."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, images):
        hidden = functional.max_pool2d(functional.relu(self.conv1(images)), 2)
        hidden = functional.max_pool2d(functional.relu(self.conv2(hidden)), 2)
        hidden = torch.flatten(hidden, 1)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(hidden)))))


MODELS = {"tutorial": TutorialNet, "lenet": LeNet}


class Server:
    """Lives on rank 0. Trainers call it through an RRef."""

    def __init__(self, model):
        torch.manual_seed(1)
        self.model = MODELS[model]()

    def forward(self, images):
        return self.model(images)

    def parameters(self):
        return [rpc.RRef(parameter) for parameter in self.model.parameters()]

    def evaluate(self, images, labels):
        self.model.eval()
        with torch.no_grad():
            right = sum(
                int((self.model(part).argmax(1) == answers).sum())
                for part, answers in zip(images.split(500), labels.split(500))
            )
        return right / len(labels)


def read_idx(path, offset):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=offset)


def load(folder, split):
    images = read_idx(os.path.join(folder, f"{split}-images-idx3-ubyte.gz"), 16).reshape(-1, 1, 28, 28)
    labels = read_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte.gz"), 8)
    scaled = (torch.from_numpy(images.copy()).float() / 255 - MEAN) / DEVIATION
    return scaled, torch.from_numpy(labels.copy()).long()


def train(rank, data, arguments):
    """One trainer's part of the samples."""
    images, labels = data
    server = rpc.remote(SERVER, Server, args=(arguments.model,)) if rank == 1 else None
    server = share(server)
    optimizer = DistributedOptimizer(
        torch.optim.SGD, server.rpc_sync().parameters(), lr=arguments.learning_rate, momentum=arguments.momentum
    )
    torch.manual_seed(rank)
    done = lost = 0
    for _ in range(arguments.epochs):
        order = torch.randperm(len(images))[: len(images) // arguments.trainers]
        for rows in order.split(arguments.batch_size):
            if arguments.batches and done == arguments.batches:
                break
            with dist_autograd.context() as context:
                output = server.rpc_sync().forward(images[rows])
                loss = functional.cross_entropy(output, labels[rows])
                try:
                    dist_autograd.backward(context, [loss])
                    optimizer.step(context)
                except RuntimeError as error:  # another trainer's step came between forward and backward
                    if "modified by an inplace operation" not in str(error):
                        raise
                    lost += 1
            done += 1
    return server, done, lost


SHARED = []


def offer(server):
    SHARED.append(server)


def ask():
    return SHARED[0] if SHARED else None


def share(server):
    """Trainer 1 makes the model; the others ask rank 0 for it."""
    if server is not None:
        rpc.rpc_sync(SERVER, offer, args=(server,))
        return server
    while server is None:
        server = rpc.rpc_sync(SERVER, ask)
        time.sleep(0.01)
    return server


def main(rank, arguments):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(arguments.port))
    world = arguments.trainers + 1
    torch.set_num_threads(arguments.threads)
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=0)
    rpc.init_rpc(SERVER if rank == 0 else f"trainer{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    if rank > 0:
        data = load(arguments.data_dir, "train")
        began = time.monotonic()
        server, batches, lost = train(rank, data, arguments)
        seconds = time.monotonic() - began
        print(f"trainer {rank}: {batches * arguments.batch_size / seconds:.0f} images/s, {lost} batches lost", flush=True)
        if rank == 1 and arguments.test:
            images, labels = load(arguments.data_dir, "t10k")
            print(f"test accuracy {server.rpc_sync().evaluate(images, labels):.4f}", flush=True)
    rpc.shutdown()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(MODELS), default="tutorial")
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=0.03)
    parser.add_argument("--momentum", type=float, default=0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batches", type=int, default=0, help="of each trainer; 0: all of --epochs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-test", dest="test", action="store_false")
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    return parser.parse_args()


if __name__ == "__main__":
    ARGUMENTS = parse()
    torch.multiprocessing.spawn(main, args=(ARGUMENTS,), nprocs=ARGUMENTS.trainers + 1)
