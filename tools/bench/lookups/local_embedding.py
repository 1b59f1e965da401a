#!/usr/bin/python3
"""The table of lookup_worker in one process: torch.nn.EmbeddingBag with sparse gradients, one thread.

Prints "ready", waits for a line, then measures and prints a JSON object.
"""

import argparse
import sys
import time

import torch
from torch import nn

from zipf import Zipf, report

WARM_UP = 5  # batches that do not count
OPTIMIZERS = {"adagrad": torch.optim.Adagrad, "sparse-adam": torch.optim.SparseAdam}


def main():
    flags = parse()
    torch.set_num_threads(1)
    bags = nn.EmbeddingBag(flags.rows, flags.width, mode="sum", sparse=True)
    optimizer = OPTIMIZERS[flags.optimizer](list(bags.parameters()), lr=0.01)
    batches = Zipf(flags.rows, flags.exponent, 1).draw(WARM_UP + flags.batches, flags.ids)
    offsets = torch.arange(0, flags.ids, flags.bag)
    rows = sum(len(ids.unique()) for ids in batches[WARM_UP:])
    began, times = 0, []
    for batch, ids in enumerate(batches):
        if batch == WARM_UP:
            print("ready", flush=True)
            sys.stdin.readline()
            began, times = time.monotonic(), []
        start = time.monotonic()
        optimizer.zero_grad()
        bags(ids, offsets).mean().backward()
        optimizer.step()
        times.append(time.monotonic() - start)
    report(time.monotonic() - began, flags.ids * flags.batches, rows, times)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="sparse-adam")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--ids", type=int, default=4096)
    parser.add_argument("--bag", type=int, default=1)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--exponent", type=float, default=1.1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
