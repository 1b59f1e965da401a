"""Which rows of a data set a worker takes."""

import ctypes
from typing import TYPE_CHECKING, Iterator, List, Sized, Union

import torch

from sluice._library import check, library

if TYPE_CHECKING:
    from sluice.optimizer import DistributedOptimizer


def permutation(size: int, seed: int, epoch: int) -> "ctypes.Array[ctypes.c_int64]":
    """Returns the order of an epoch, an array of [0, size), with the bits of sluice_train (worker/data/sampler.h)."""
    order = (ctypes.c_int64 * max(1, size))()
    check(library.sluice_order(size, seed, epoch, order))
    return order


class DistributedSampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
    """Deals batches to workers as sluice_train does: give it to DataLoader(data, batch_sampler=...).

    In an epoch all workers use the same order of the data, drawn from (seed, epoch). Let B be the batch size and W the
    number of workers: step g takes the next B x W rows of the order, and worker r the r-th block of B of them. So the
    workers together see what one worker of batch size B x W sees, in the same order. The remainder, less than B x W
    rows, is dropped; each epoch drops others.

    Iterating yields this worker's batches of an epoch, each a list of B rows. Each iteration is the next epoch;
    set_epoch() chooses one. A process that was started again in a worker's place begins after the batches that were
    pushed before it: epochs before that one are empty until it has begun.
    """

    def __init__(self, data: Union[int, Sized], batch_size: int, optimizer: "DistributedOptimizer", seed: int = 1) -> None:
        """`data` has a length, or is one. `optimizer` is a DistributedOptimizer, which tells this worker's place."""
        self._size = data if isinstance(data, int) else len(data)
        self._batch_size = batch_size
        self._index = optimizer.index % optimizer.workers
        self._workers = optimizer.workers
        self._seed = seed
        if batch_size < 1:
            raise ValueError(f"the batch size is {batch_size}, expected at least 1")
        if self._size < batch_size * self._workers:
            raise ValueError(f"the data set has {self._size} rows, expected at least {batch_size * self._workers}: one batch "
                             f"of {batch_size} for each of {self._workers} workers; lower the batch size or use fewer")
        self._begin = divmod(optimizer.batches_before, self._steps())  # (epoch, batch)
        self._epoch = self._begin[0]

    def _steps(self) -> int:
        return self._size // (self._batch_size * self._workers)

    def __len__(self) -> int:
        """The batches of this worker in an epoch."""
        return self._steps()

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is epoch `epoch`, which counts from 0."""
        self._epoch = epoch

    def _first_of(self, epoch: int) -> int:
        """Returns the first batch to give: after those that earlier processes in this worker's place have pushed."""
        begin, batch = self._begin
        if epoch < begin:
            return self._steps()
        self._begin = (0, 0)
        return batch if epoch == begin else 0

    def __iter__(self) -> Iterator[List[int]]:
        order = permutation(self._size, self._seed, self._epoch)
        first = self._first_of(self._epoch)
        self._epoch += 1
        for step in range(first, self._steps()):
            begin = (step * self._workers + self._index) * self._batch_size
            yield order[begin:begin + self._batch_size]
