#!/usr/bin/env python3
"""Prints what torchvision's models make of fixed inputs with fixed parameters: "NAME logit logit ..." a line.

A line for each model of torchvision, and for the variant for small images that Sluice has. models_test.cc makes the
same parameters and inputs by the same arithmetic on whole numbers, and compares.
"""

import sys
import zlib

import torch
import torchvision
from torch import nn

CLASSES = 10
LARGE, SMALL = 64, 32
PERIOD = 1000003  # a prime, so that no two rows of a layer are the same


def uniform(count, salt):
    """Returns numbers from -0.5 on and below 0.5, the same in every language, which repeat."""
    whole = (torch.arange(min(count, PERIOD)) * 2654435761 + salt) & 0xFFFFFFFF
    numbers = whole.to(torch.float64) / 4294967296.0 - 0.5
    return numbers.repeat(-(-count // PERIOD))[:count]


def fill(name, tensor):
    numbers = uniform(tensor.numel(), zlib.crc32(name.encode())).reshape(tensor.shape)
    if tensor.dim() > 1:
        fan_in = tensor.numel() // tensor.shape[0]
        numbers = numbers * (24 / fan_in) ** 0.5
    elif name.endswith("running_var"):
        numbers = numbers + 1
    elif name.endswith("weight"):
        numbers = numbers * 0.2 + 1
    else:
        numbers = numbers * 0.2
    tensor.copy_(numbers)


def show(name, model, side):
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.dtype == torch.float32:
                fill(key, tensor)
        model.eval()
        images = uniform(2 * 3 * side * side, 1).reshape(2, 3, side, side).to(torch.float32) * 4
        logits = model(images).flatten().tolist()
    print(name, *(f"{logit:.9g}" for logit in logits), flush=True)


def resnet(layers, small):
    model = getattr(torchvision.models, f"resnet{layers}")(num_classes=CLASSES)
    if small:
        model.conv1 = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False)
        model.maxpool = nn.Identity()
    return model


def vgg(layers, normalizes, small):
    model = getattr(torchvision.models, f"vgg{layers}" + ("_bn" if normalizes else ""))(
        num_classes=CLASSES, init_weights=False
    )
    if small:
        model.avgpool = nn.AdaptiveAvgPool2d(1)
        model.classifier = nn.Sequential(nn.Linear(512, CLASSES))
    return model


def main():
    torch.set_num_threads(1)
    for layers in (18, 34, 50, 152):
        show(f"resnet{layers}/{LARGE}", resnet(layers, small=False), LARGE)
    for layers in (18, 50):
        show(f"resnet{layers}/{SMALL}", resnet(layers, small=True), SMALL)
    for layers, normalizes in ((11, False), (13, True), (16, True), (19, False)):
        name = f"vgg{layers}" + ("-bn" if normalizes else "")
        show(f"{name}/{SMALL}", vgg(layers, normalizes, small=True), SMALL)
    show(f"vgg11/{LARGE}", vgg(11, normalizes=False, small=False), LARGE)


if __name__ == "__main__":
    sys.exit(main())
