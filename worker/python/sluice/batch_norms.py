"""The statistics of a model: the averages of batch normalization are running means for the server (sluice.h)."""

from collections import Counter
from typing import Any, List, Optional, Tuple

import torch

from sluice import _library
from sluice.model import FlatModel

Means = Tuple[Any, int]  # what the library takes: an array of _library.RunningMean, and its size

_BatchNorm = torch.nn.modules.batchnorm._BatchNorm  # pylint: disable=protected-access


class BatchNorms:
    """Counts batches between a pull and the next push. A module with a forward() of its own is left alone.

    Other buffers are pushed as values if a batch has changed them, and as no change otherwise: what is constant keeps its
    bits. Of a count of batches, the number of new batches is pushed.
    """

    def __init__(self, model: Optional[torch.nn.Module], flat: FlatModel) -> None:
        places = {id(member.tensor): member for member in flat.members if not member.is_parameter}
        averages: List[Tuple[int, int, int]] = []  # offset, length, and index of its module
        self._modules: List[Any] = []  # of type _BatchNorm, whose attributes PyTorch declares too widely
        norms = [] if model is None else [module for module in model.modules() if _counts_batches(module)]
        uses = Counter(id(tensor) for module in norms for tensor in (module.running_mean, module.running_var))
        for module in norms:
            for tensor in (module.running_mean, module.running_var):
                # What two modules share has more batches than either counts. In 16 bits, roundings would be taken for them.
                known = uses[id(tensor)] == 1 and tensor.dtype in (torch.float32, torch.float64)
                if known and id(tensor) in places:
                    member = places[id(tensor)]
                    averages.append((member.offset, member.length, len(self._modules)))
            self._modules.append(module)
        self._averages = sorted(averages)
        placed = {offset for offset, _, _ in averages}
        self._others = [member for member in flat.members if not member.is_parameter and member.offset not in placed]
        self._pulled = self._counts()

    def _counts(self) -> List[int]:
        counters = [module.num_batches_tracked.reshape(()) for module in self._modules]
        if len({counter.device for counter in counters}) == 1:
            return [int(count) for count in torch.stack(counters).tolist()]  # a GPU is waited for once
        return [int(counter) for counter in counters]

    def elements(self) -> Means:
        """Returns the averages and the other buffers, for sluice_keep_running_means()."""
        averages = [(offset, length, 0.0) for offset, length, _ in self._averages]
        return _array(sorted(averages + [(other.offset, other.length, 0.0) for other in self._others]))

    def note_pull(self) -> None:
        self._pulled = self._counts()

    def go_on_from(self, before: "BatchNorms") -> None:
        """What batches have changed since the last pull of `before`, of the same module, was not pushed."""
        if len(before._pulled) == len(self._pulled):
            self._pulled = before._pulled

    def decays(self) -> Means:
        """Returns how much of what was pulled is left in them, for sluice_set_running_means().

        All of the others, as far as known: the library compares a buffer with what was pulled.
        """
        decays = [_decay(module.momentum, before, now - before)
                  for module, before, now in zip(self._modules, self._pulled, self._counts())]
        left = [(offset, length, decays[module]) for offset, length, module in self._averages]
        means: List[Tuple[int, int, float]] = []
        for offset, length, decay in sorted(left + [(other.offset, other.length, 1.0) for other in self._others]):
            if means and means[-1][0] + means[-1][1] == offset and means[-1][2] == decay:
                means[-1] = (means[-1][0], means[-1][1] + length, decay)
            elif 0 <= decay <= 1:
                means.append((offset, length, decay))
        return _array(means)


def _counts_batches(module: torch.nn.Module) -> bool:
    known = isinstance(module, _BatchNorm) and type(module).forward in (_BatchNorm.forward,
                                                                        torch.nn.SyncBatchNorm.forward)
    if not known or module.running_mean is None or module.num_batches_tracked is None:
        return False
    return bool(module.num_batches_tracked.dtype == torch.int64)


def _decay(momentum: Optional[float], before: int, batches: int) -> float:
    """Returns what `batches` batches leave of a value that `before` made; a negative number if that is unknown."""
    if batches < 0:
        return -1.0
    if momentum is not None:
        return float((1 - momentum)**batches)
    return before / (before + batches) if batches else 1.0


def _array(means: List[Tuple[int, int, float]]) -> Means:
    return (_library.RunningMean * max(1, len(means)))(*[_library.RunningMean(*mean) for mean in means]), len(means)
