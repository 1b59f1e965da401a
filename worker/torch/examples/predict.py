#!/usr/bin/env python3
"""How probable each class is of an image: what predict_main.cc does, in Python.

usage: predict.py CHECKPOINT IMAGES INDEX

CHECKPOINT is of a LeNet: a file of one server or of several, their --checkpoint-dir, which means its newest, or what
`tools/sluicectl checkpoint export` wrote. IMAGES is an IDX file, plain or .gz. The package `sluice` must be installed,
or in PYTHONPATH (worker/python).
"""

import gzip
import os
import sys
import zipfile

import sluice
import torch
from torch import nn
from torch.nn import functional as F


class LeNet(nn.Module):
    """The names are those of worker/torch/models/models.cc."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def read_parameters(path):
    """The model's tensors: of a checkpoint, or of a file that torch.save() or the export wrote."""
    if os.path.isfile(path) and zipfile.is_zipfile(path):
        return torch.load(path)
    return sluice.load_checkpoint(path)


def read_image(path, index):
    """One of the images, as the model takes it: see worker/data/batch.cc."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with (gzip.open if zipped else open)(path, "rb") as file:
        images = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=16).reshape(-1, 1, 28, 28)
    return (images[index : index + 1].float() / 255 - 0.2860) / 0.3530


def main(path, images, index):
    model = LeNet()
    model.load_state_dict(read_parameters(path))
    model.eval()
    with torch.no_grad():
        probabilities = F.softmax(model(read_image(images, int(index))), 1)[0]
    for k, probability in enumerate(probabilities.tolist()):
        print(f"class {k}  {probability:.4f}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
