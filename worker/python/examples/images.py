#!/usr/bin/env python3
"""Trains LeNet on Fashion-MNIST with a parameter server.

    mpirun --bind-to none -n 4 python3 images.py              rank 0 serves, three workers train
    python3 images.py --sluice-server=host:port               a worker of a server that runs elsewhere
"""

import argparse
import sys

import sluice

if __name__ == "__main__":
    job = sluice.start()  # takes Sluice's flags, such as --sluice-mode=async, out of sys.argv
    if job.is_server:
        sys.exit(job.serve())

# pylint: disable=wrong-import-position
import torch  # noqa: E402
from fashion import FOLDER, LeNet, accuracy, load  # noqa: E402
from torch import nn  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", default=FOLDER)
    parser.add_argument("--epochs", type=int, default=1, help="passes over the data, all workers together")
    parser.add_argument("--max-steps", type=int, default=0, help="end after so many batches; 0: no limit")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--local-steps", type=int, default=0)
    parser.add_argument("--overlap", action="store_true")
    parser.add_argument("--init-from", help="file of torch.save(model.state_dict(), file)")
    flags = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    images, labels = load(flags.data_dir, "train")
    model = LeNet()
    if flags.init_from:
        model.load_state_dict(torch.load(flags.init_from))
    sgd = torch.optim.SGD(model.parameters(), lr=flags.learning_rate, momentum=flags.momentum)
    optimizer = sluice.DistributedOptimizer(sgd, job, model, local_steps=flags.local_steps, overlap=flags.overlap)
    sampler = sluice.DistributedSampler(images, flags.batch_size, optimizer)
    steps = 0
    for epoch in range(flags.epochs):
        sampler.set_epoch(epoch)
        for rows in sampler:
            if steps == flags.max_steps > 0:
                break
            steps += 1
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step(samples=len(rows), loss=loss)
            if job.speaks and steps % 100 == 0:
                print(f"epoch {epoch + 1}, step {optimizer.last.step}, loss {loss.item():.4f}", flush=True)
    if optimizer.index != 0:
        optimizer.leave()
        return
    optimizer.await_end()
    result = accuracy(model, *load(flags.data_dir, "t10k"))
    print(f"test accuracy {result:.4f}", flush=True)
    optimizer.report(test_accuracy=result)


if __name__ == "__main__":
    main()
