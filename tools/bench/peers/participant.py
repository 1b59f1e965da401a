"""A participant of a cell, for peers in Python: what tools/bench/harness/participant.h is for those in C++."""

import argparse
import resource
import sys
import time

import numpy as np

LEARNING_RATE = 1 / 64


def parser(description):
    """A parser of the flags that make a participant; a peer adds its own."""
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
    """Says "ready", then answers the lines on stdin until they end."""
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
    """The same as SyntheticGradient of tools/bench/harness/gradient.h."""
    noise = np.arange(elements, dtype=np.uint32)
    noise = (noise ^ (noise >> 16)) * np.uint32(0x85EBCA6B)
    noise = (noise ^ (noise >> 13)) * np.uint32(0xC2B2AE35)
    noise ^= noise >> 16
    return noise.view(np.int32).astype(np.float32) * np.float32(2.0**-40)


def cut(vector, layers):
    """Views of the vector, one for each layer."""
    return np.split(vector, np.cumsum(layers)[:-1])


def check_parameters(gradient, steps, parameters):
    """Raises unless the parameters are what SGD makes of so many steps from zero."""
    expected = -LEARNING_RATE * steps * gradient.astype(np.float64)
    wrong = np.flatnonzero(np.abs(parameters - expected) > 1e-4 * np.abs(expected))
    if parameters.shape != expected.shape or wrong.size:
        raise AssertionError(f"{wrong.size} parameters are not what SGD makes in {steps} steps")
