"""Fashion-MNIST, and a model for it. images.py trains it, and evaluate.py evaluates it meanwhile."""

import gzip
import os

import torch
from torch import nn

FOLDER = "/usr/share/datasets/fashion-mnist"  # of Debian's package dataset-fashion-mnist
MEAN, DEVIATION = 0.2860, 0.3530  # of the training images' pixels, from 0 to 1


def load(folder, split):
    """Returns images [n, 1, 28, 28] of float32, normalized, and labels [n] of int64."""
    with gzip.open(os.path.join(folder, f"{split}-images-idx3-ubyte.gz")) as file:
        images = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=16)
    with gzip.open(os.path.join(folder, f"{split}-labels-idx1-ubyte.gz")) as file:
        labels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=8)
    return (images.view(-1, 1, 28, 28).float() / 255 - MEAN) / DEVIATION, labels.long()


class LeNet(nn.Module):
    """LeNet-5 (LeCun et al. 1998) with rectified linear units and max pooling."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, images):
        hidden = torch.max_pool2d(torch.relu(self.conv1(images)), 2)
        hidden = torch.max_pool2d(torch.relu(self.conv2(hidden)), 2)
        hidden = torch.relu(self.fc2(torch.relu(self.fc1(hidden.flatten(1)))))
        return self.fc3(hidden)


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum((model(part).argmax(1) == truth).sum().item()
                    for part, truth in zip(images.split(1000), labels.split(1000)))
    return right / len(labels)
