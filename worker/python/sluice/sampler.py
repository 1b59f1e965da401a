"""Which rows of a data set a worker takes."""

import ctypes
import sys
import weakref
from typing import TYPE_CHECKING, Iterator, List, Sequence, Sized, Tuple, Union

import torch

from sluice._library import check, library

if TYPE_CHECKING:
    from sluice.optimizer import DistributedOptimizer
    from sluice.remote_module import RemoteModule


# A DataLoader tells its sampler nothing, but it iterates `sampler` here, and `batch_sampler` by itself.
_MAKES_BATCHES = torch.utils.data.BatchSampler.__iter__.__code__


def permutation(size: int, seed: int, epoch: int) -> "ctypes.Array[ctypes.c_int64]":
    """Returns the order of an epoch, an array of [0, size), with the bits of sluice_train (worker/data/sampler.h)."""
    order = (ctypes.c_int64 * max(1, size))()
    check(library.sluice_order(size, seed, epoch, order))
    return order


class _Deal:
    """Which blocks of the data a worker takes, as worker/data/batch_deal.h says."""

    def __init__(self, blocks: int, index: int, workers: int, earlier_launches: Sequence[Sequence[int]]) -> None:
        self._index = index
        self._workers = workers
        self._per_epoch = blocks // workers * workers
        self._remainder: List[Tuple[int, int]] = []  # (epoch, block) of epochs that earlier launches have begun
        self._whole_from = 0  # the first epoch that none has begun
        for launch in earlier_launches:
            self._take_out(blocks, launch)

    def at(self, batch: int) -> Tuple[int, int]:
        """Returns (epoch, block) of this worker's batch of that number, which counts over all epochs."""
        return self._left(self._index + batch * self._workers, self._per_epoch)

    def count(self, epochs: int) -> int:
        """Returns how many batches of this worker are in the first epochs."""
        left = sum(epoch < epochs for epoch, _ in self._remainder)
        left += max(0, epochs - self._whole_from) * self._per_epoch
        return max(0, left - self._index + self._workers - 1) // self._workers

    def _left(self, position: int, per_epoch: int) -> Tuple[int, int]:
        if position < len(self._remainder):
            return self._remainder[position]
        epochs, block = divmod(position - len(self._remainder), per_epoch)
        return self._whole_from + epochs, block

    def _take_out(self, blocks: int, launch: Sequence[int]) -> None:
        workers = len(launch)
        if not 0 < workers <= blocks:
            return
        per_epoch = blocks // workers * workers
        following = [index + taken * workers for index, taken in enumerate(launch)]
        dealt = max(0, max(following) - workers + 1)
        begun = len(self._remainder)
        epochs = max(0, dealt - begun + per_epoch - 1) // per_epoch
        left = [self._left(k, per_epoch) for k in range(min(following), begun + epochs * per_epoch)
                if k // workers >= launch[k % workers]]
        self._remainder = left
        self._whole_from += epochs


class DistributedSampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
    """Deals batches to workers as sluice_train does: give it to DataLoader(data, batch_sampler=...).

    In an epoch all workers use the same order of the data, drawn from (seed, epoch). Let B be the batch size and W the
    number of workers: step g takes the next B x W rows of the order, and worker r the r-th block of B of them. So the
    workers together see what one worker of batch size B x W sees, in the same order. The remainder, less than B x W
    rows, is dropped; each epoch drops others.

    Iterating yields this worker's batches of an epoch, each a list of B rows. The first iteration is epoch 0, and each
    is the next one; set_epoch() chooses one. So a loop over the epochs of a job goes on where the job is, also if the
    job was killed, or had ended, and is started again: an epoch that was trained before has no batches, and of one that
    was begun the rest is yielded. Worker 0 says in a line on stderr that it begins later. If a job goes on with another
    number of workers, these share the batches that are left; one of them may then have a batch more of an epoch than
    another.
    """

    def __init__(self, data: Union[int, Sized], batch_size: int, optimizer: "Union[DistributedOptimizer, RemoteModule]",
                 seed: int = 1) -> None:
        """`data` has a length, or is one. `optimizer` is a DistributedOptimizer, or a RemoteModule: it tells this worker's place."""
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
        self._deal = _Deal(self._size // batch_size, self._index, self._workers, optimizer.earlier_launches)
        self._begin = optimizer.batches_before  # until the epoch of this batch has begun
        self._epoch = 0
        self._tells = optimizer.index == 0
        # What only tells a place needs no more.
        self._optimizer = weakref.ref(optimizer) if isinstance(optimizer, torch.optim.Optimizer) else None

    def __len__(self) -> int:
        """The batches of a worker in a whole epoch, such as for the length of a schedule."""
        return self._size // self._batch_size // self._workers

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is epoch `epoch`, which counts from 0."""
        self._epoch = epoch

    def _batches_of(self, epoch: int) -> range:
        """Returns the batches to give: after those that earlier processes in this worker's place have pushed."""
        end = self._deal.count(epoch + 1)
        if self._begin >= end:
            return range(0)
        begin, self._begin = self._begin, 0
        return range(max(begin, self._deal.count(epoch)), end)

    def _tell_of_what_is_done(self) -> None:
        """Says once that the job is beyond the epoch of this iteration."""
        now = self._deal.at(self._begin)[0]
        if self._tells and self._epoch < now:
            done, them = ("1 epoch", "it") if now == 1 else (f"{now} epochs", "them")
            print(f"sluice: this job has trained {done} before. The loop skips {them}, and trains from epoch "
                  f"{now} on, which counts from 0. To train more, give the loop more epochs; to begin anew, give the server "
                  "another --checkpoint-dir", file=sys.stderr, flush=True)
        self._tells = False

    def __iter__(self) -> Iterator[List[int]]:
        if sys._getframe(1).f_code is _MAKES_BATCHES:  # pylint: disable=protected-access
            raise ValueError("DataLoader(…, sampler=…) got a sluice.DistributedSampler, whose items are batches, and would "
                             "make batches of batches; give it as batch_sampler=, without batch_size= and drop_last=")
        self._tell_of_what_is_done()
        epoch, self._epoch = self._epoch, self._epoch + 1
        optimizer = None if self._optimizer is None else self._optimizer()
        if optimizer is not None and self._begin < self._deal.count(epoch + 1) and optimizer.catch_up():
            self._begin = optimizer.batches_before  # it was started again
        return self._rows_of(epoch, self._batches_of(epoch))

    def _rows_of(self, epoch: int, batches: range) -> Iterator[List[int]]:
        if not batches:
            return
        order = permutation(self._size, self._seed, epoch)
        for batch in batches:
            begin = self._deal.at(batch)[1] * self._batch_size
            yield order[begin:begin + self._batch_size]
