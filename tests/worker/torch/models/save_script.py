#!/usr/bin/env python3
"""save_script.py FILE script|trace|trace-training|freeze CLASSES: saves a model as TorchScript, as a user does in Python.

The model has a layer that behaves otherwise in training, and a nested one. Prints the sum of its logits of an image
of ones.
"""

import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(784, 8), nn.BatchNorm1d(8))
        self.head = nn.Linear(8, classes)

    def forward(self, images):
        return self.scale * self.head(torch.relu(self.body(images)))


def main():
    path, how, classes = sys.argv[1:]
    torch.manual_seed(3)
    model = Model(int(classes)).eval()
    image = torch.ones(1, 1, 28, 28)
    print(model(image).sum().item())
    if how == "script":
        made = torch.jit.script(model)
    elif how == "freeze":
        made = torch.jit.freeze(torch.jit.script(model))
    elif how == "trace":
        made = torch.jit.trace(model, image)
    else:
        made = torch.jit.trace(model.train(), torch.ones(2, 1, 28, 28), check_trace=False)
    torch.jit.save(made, path)


if __name__ == "__main__":
    sys.exit(main())
