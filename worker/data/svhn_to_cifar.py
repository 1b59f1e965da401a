#!/usr/bin/env python3
"""svhn_to_cifar.py IN.mat OUT.bin: writes SVHN's cropped digits in the form of CIFAR-10, as sluice_train reads them.

Get train_32x32.mat and test_32x32.mat from http://ufldl.stanford.edu/housenumbers and make train.bin and test.bin of
them. Needs Debian's python3-scipy.
"""

import sys

import numpy
from scipy.io import loadmat

data = loadmat(sys.argv[1])
images = data["X"].transpose(3, 2, 0, 1).reshape(-1, 3 * 32 * 32)  # from row, column, channel, image
labels = (data["y"] % 10).astype(numpy.uint8)  # 10 stands for the digit 0
numpy.hstack([labels, images]).tofile(sys.argv[2])
