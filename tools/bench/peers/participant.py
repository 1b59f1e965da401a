"""A participant of a cell, for peers in Python; tools/bench/harness/participant.h says what it does."""

import argparse
import resource
import sys
import time

import numpy as np

LEARNING_RATE = 1 / 64


def parser(description):
    """Returns a parser of the flags of a participant. A peer adds its own flags."""
    flags = argparse.ArgumentParser(description=description)
    flags.add_argument("--participant", choices=["server", "worker"])
    flags.add_argument("--elements", type=int, required=True)
    flags.add_argument("--workers", type=int, required=True)
    flags.add_argument("--index", type=int, default=0)
    flags.add_argument("--address", default="")
    flags.add_argument("--layers", type=_sizes, default=[])
    return flags


def _sizes(text):
    return [int(size) for size in text.split(",")]


def answer_parent(detail, one_round):
    """Prints "ready", then answers the lines on stdin until stdin ends."""
    print("ready", detail, flush=True)
    for line in sys.stdin:
        if line == "usage\n":
            print(_usage(), flush=True)
        elif line == "round\n" and one_round:
            start = time.perf_counter()
            one_round()
            print(f"{time.perf_counter() - start:.9f}", flush=True)
        else:
            raise ValueError(f'was told {line!r}, expected "round" or "usage"')


def _usage():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return f"{usage.ru_utime + usage.ru_stime:.6f} {1024 * usage.ru_maxrss}"


def synthetic_gradient(elements):
    """Returns the values of SyntheticGradient() in tools/bench/harness/gradient.h."""
    noise = np.arange(elements, dtype=np.uint32)
    noise = (noise ^ (noise >> 16)) * np.uint32(0x85EBCA6B)
    noise = (noise ^ (noise >> 13)) * np.uint32(0xC2B2AE35)
    noise ^= noise >> 16
    return noise.view(np.int32).astype(np.float32) * np.float32(2.0**-40)


def cut(vector, layers):
    """Returns views of the vector, one for each layer."""
    return np.split(vector, np.cumsum(layers)[:-1])


def check_parameters(gradient, steps, parameters):
    """Raises unless the parameters are what SGD makes of so many steps from zero."""
    expected = -LEARNING_RATE * steps * gradient.astype(np.float64)
    wrong = np.flatnonzero(np.abs(parameters - expected) > 1e-4 * np.abs(expected))
    if parameters.shape != expected.shape or wrong.size:
        raise AssertionError(f"{wrong.size} parameters are not what SGD makes in {steps} steps")
