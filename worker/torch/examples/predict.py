#!/usr/bin/env python3
"""How probable each class is of an image: what predict_main.cc does, in Python.

usage: predict.py FILE IMAGES INDEX

FILE holds a LeNet: a checkpoint of one server, or what `tools/sluicectl checkpoint export` wrote of one or
several; IMAGES is an IDX file, plain or .gz.
"""

import gzip
import json
import sys

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


def read_checkpoint(path):
    """The model's tensors of a safetensors file. Its checksum is not looked at: see sluicectl."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or name.startswith("sluice:"):  # the server's own
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(data[begin:end], dtype=torch.float32).reshape(entry["shape"])
    return tensors


def read_image(path, index):
    """One of the images, as the model takes it: see worker/data/batch.cc."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with (gzip.open if zipped else open)(path, "rb") as file:
        images = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=16).reshape(-1, 1, 28, 28)
    return (images[index : index + 1].float() / 255 - 0.2860) / 0.3530


def main(path, images, index):
    model = LeNet()
    model.load_state_dict(read_checkpoint(path) if path.endswith(".safetensors") else torch.load(path))
    model.eval()
    with torch.no_grad():
        probabilities = F.softmax(model(read_image(images, int(index))), 1)[0]
    for k, probability in enumerate(probabilities.tolist()):
        print(f"class {k}  {probability:.4f}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
