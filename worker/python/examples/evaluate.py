#!/usr/bin/env python3
"""Evaluates the model of images.py while it is trained.

    python3 evaluate.py --server=host:port        ends when the training ends
"""

import argparse

import sluice
import torch
from fashion import FOLDER, LeNet, accuracy, load


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True, help="host:port or unix:/path")
    parser.add_argument("--data-dir", default=FOLDER)
    parser.add_argument("--every", type=int, default=1, help="least number of steps between two evaluations")
    flags = parser.parse_args()
    torch.set_num_threads(1)
    images, labels = load(flags.data_dir, "t10k")
    model = LeNet()
    for step in sluice.follow(model, server=flags.server, every=flags.every):
        print(f"step {step}, test accuracy {accuracy(model, images, labels):.4f}", flush=True)


if __name__ == "__main__":
    main()
