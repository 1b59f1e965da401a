#!/usr/bin/python3
"""The table of lookup_worker through PyTorch RPC: a torch.nn.EmbeddingBag on rank 0, trained by the other ranks.

Forward is a remote call, dist_autograd crosses the wire, and DistributedOptimizer steps Adagrad on the server, as in
PyTorch's tutorials on RPC. Gradients are sparse. Prints "ready", waits for a line, then measures and prints a JSON object.
"""

import argparse
import sys
import time

import torch
import torch.distributed.autograd as dist_autograd
from torch import nn
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer

from zipf import Zipf, report

SERVER = "server"
WARM_UP = 5  # batches that do not count


class Server:
    """Lives on rank 0. Trainers call it through an RRef."""

    def __init__(self, rows, width):
        self.bags = nn.EmbeddingBag(rows, width, mode="sum", sparse=True)

    def forward(self, ids, offsets):
        return self.bags(ids, offsets)

    def parameters(self):
        return [rpc.RRef(parameter) for parameter in self.bags.parameters()]


_server = None


def the_server(rows, width):
    """The server's one table, as an RRef."""
    global _server
    if _server is None:
        _server = rpc.RRef(Server(rows, width))
    return _server


def train(flags):
    server = rpc.rpc_sync(SERVER, the_server, args=(flags.rows, flags.width))
    parameters = server.rpc_sync().parameters()
    optimizer = DistributedOptimizer(torch.optim.Adagrad, parameters, lr=0.01)
    batches = Zipf(flags.rows, flags.exponent, flags.rank).draw(WARM_UP + flags.batches, flags.ids)
    offsets = torch.arange(0, flags.ids, flags.bag)
    rows = sum(len(ids.unique()) for ids in batches[WARM_UP:])
    began, times = 0, []
    for batch, ids in enumerate(batches):
        if batch == WARM_UP:
            print("ready", flush=True)
            sys.stdin.readline()
            began, times = time.monotonic(), []
        start = time.monotonic()
        with dist_autograd.context() as context:
            loss = server.rpc_sync().forward(ids, offsets).mean()
            dist_autograd.backward(context, [loss])
            optimizer.step(context)
        times.append(time.monotonic() - start)
    report(time.monotonic() - began, flags.ids * flags.batches, rows, times)


def main():
    flags = parse()
    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(
        init_method=f"file://{flags.rendezvous}", rpc_timeout=600, _transports=[flags.transport]
    )
    name = SERVER if flags.rank == 0 else f"trainer{flags.rank}"
    rpc.init_rpc(name, rank=flags.rank, world_size=flags.trainers + 1, rpc_backend_options=options)
    if flags.rank > 0:
        train(flags)
    rpc.shutdown()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--trainers", type=int, required=True)
    parser.add_argument("--rendezvous", required=True, help="a file that does not exist yet")
    parser.add_argument("--transport", default="uv", help="of TensorPipe: uv (TCP) or shm")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--ids", type=int, default=4096)
    parser.add_argument("--bag", type=int, default=1)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--exponent", type=float, default=1.1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
