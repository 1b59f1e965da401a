"""What the Python peers of lookup_worker share: ids by Zipf's law, and the line that a worker prints."""

import json

import numpy as np
import torch


class Zipf:
    """Draws ids 0 to rows − 1, of which id k has a probability in proportion to (k + 1)^(−exponent)."""

    def __init__(self, rows, exponent, seed):
        self._until = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -exponent)
        self._until /= self._until[-1]
        self._generator = np.random.default_rng(seed)

    def draw(self, batches, count):
        return [torch.from_numpy(np.searchsorted(self._until, self._generator.random(count))) for _ in range(batches)]


def report(seconds, ids, rows, times):
    """`rows`: different ids in each batch, added."""
    ordered = sorted(times)
    at = {"median_ms": 0.5, "p99_ms": 0.99}
    quantiles = {name: round(1e3 * ordered[int(share * (len(ordered) - 1))], 3) for name, share in at.items()}
    print(json.dumps({"seconds": round(seconds, 6), "ids": ids, "rows": rows, **quantiles}), flush=True)
