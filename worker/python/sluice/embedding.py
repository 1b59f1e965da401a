"""Embeddings whose rows are on the server: no worker holds the table."""

import weakref
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple

import torch

from sluice import _library
from sluice.errors import ModelError

if TYPE_CHECKING:
    from sluice.optimizer import DistributedOptimizer

_INITIALIZERS = {"zero": 0, "uniform": 1, "normal": 2}
_DIVISORS = {"all": 0, "row": 1}


class _Lookup:
    """Rows that a forward has pulled, and that get a gradient."""

    def __init__(self, ids: torch.Tensor, rows: torch.Tensor) -> None:
        self.ids = ids  # [rows], int64, ascending, on the CPU
        self.rows = rows  # [rows, width], a leaf
        self.is_old = False  # a step or zero_grad() has come since


class RemoteEmbedding(torch.nn.Module):
    """Takes the place of torch.nn.Embedding. Its rows are on the server, or on several.

    A forward pulls the rows of its ids, each once, and the next step() of the model's DistributedOptimizer pushes their
    gradients beside those of the model's parameters. The table's name is the module's path in the model. Ids are any
    number from 0 to 2**63 - 1. A row takes memory on a server once a gradient has touched it; before, it has its first
    value. The server's optimizer changes the rows that a step touches, and no others.

    In evaluation, or under torch.no_grad(), rows are pulled only.
    """

    def __init__(self, width: int, *, initializer: str = "normal", scale: float = 0.01, seed: int = 0,
                 optimizer: Optional[Tuple[type, Mapping[str, Any]]] = None, divisor: str = "all",
                 admit_after: int = 0, evict_after: int = 0, max_rows: int = 0) -> None:
        """Describes a table. Workers of a job must describe the same.

        Args:
          width: elements of a row.
          initializer: how rows begin: "zero", "uniform" in [-scale, scale], or "normal" with that standard deviation.
          scale, seed: of the initializer.
          optimizer: the table's own, as (torch.optim.Adagrad, {"lr": 0.1}); None: the model's. Other options have the
            server's defaults, which are PyTorch's.
          divisor: what a mean divides the sum of a row's gradients by: "all" gradients of the step, as for a parameter,
            or those that have the "row".
          admit_after: a row is made when gradients of so many steps have touched it; 0 and 1: the first.
          evict_after: a row that no gradient has touched for so many steps is removed; 0: never.
          max_rows: on each server; 0: as many as its memory takes.

        Raises:
          ModelError: an argument is outside its domain.
        """
        super().__init__()
        if initializer not in _INITIALIZERS:
            raise ModelError(f"initializer is {initializer!r}, expected one of {', '.join(_INITIALIZERS)}")
        if divisor not in _DIVISORS:
            raise ModelError(f"divisor is {divisor!r}, expected all or row")
        self.width = width
        self.table_optimizer = optimizer
        self._table = {"width": width, "initializer": _INITIALIZERS[initializer],
                       "scale": 0.0 if initializer == "zero" else scale, "seed": seed,
                       "divisor": _DIVISORS[divisor], "admit_after": admit_after, "evict_after": evict_after,
                       "max_rows": max_rows}
        self._index = 0
        self._optimizer: "Optional[weakref.ref[DistributedOptimizer]]" = None
        self._lookups: List[_Lookup] = []

    def __getstate__(self) -> Dict[str, Any]:
        # A copy has no rows: they are of the model that the DistributedOptimizer was made with.
        return {**self.__dict__, "_optimizer": None, "_lookups": []}

    def extra_repr(self) -> str:
        return f"width={self.width}"

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the rows of `ids`, which are whole numbers of any shape, as float32 in the shape [..., width].

        Raises:
          ModelError: an id is negative or no whole number, or the model has no DistributedOptimizer.
          RemoteError: the server refuses the pull, or is gone.
        """
        rows, places = self._look_up(ids)
        if not ids.numel():
            return rows.new_zeros((*ids.shape, self.width))
        return torch.nn.functional.embedding(places, rows)

    def _look_up(self, ids: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns the rows of the different ids, and for each id the number of its row."""
        different, places = torch.unique(_checked(ids), sorted=True, return_inverse=True)
        different = different.cpu().contiguous()
        if different.numel() and int(different[0]) < 0:
            raise ModelError(f"an embedding got the id {int(different[0])}, expected ids from 0 on")
        rows = torch.empty((different.numel(), self.width))
        self._owner().pull_rows(self._index, different, rows)
        rows = rows.to(ids.device)
        if self.training and torch.is_grad_enabled():
            rows.requires_grad_()
            self._lookups.append(_Lookup(different, rows))
        return rows, places

    def _owner(self) -> "DistributedOptimizer":
        owner = None if self._optimizer is None else self._optimizer()
        if owner is None:
            raise ModelError("an embedding has no rows before sluice.DistributedOptimizer(optimizer, job, model) was made "
                             "with its model, and none after it is gone")
        return owner

    # ---- For DistributedOptimizer ----

    def describe(self, name: str, optimizer: Tuple[Optional[str], Dict[str, float]]) -> _library.Table:
        """Returns the table for the library. `optimizer` is the server's name of its own, and options."""
        table = _library.Table(name.encode(), **self._table)
        if optimizer[0] is not None:
            table.optimizer = optimizer[0].encode()
            table.options, table.option_count = _library.options_of(optimizer[1])
        return table

    def bind(self, index: int, optimizer: "DistributedOptimizer") -> None:
        """From now on rows come from the client of `optimizer`, whose table has that index."""
        self._index = index
        self._optimizer = weakref.ref(optimizer)
        self._lookups.clear()

    def take_gradient(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns ids, [rows], int64, ascending, and gradients, [rows, width], of what backward has reached."""
        done = [lookup for lookup in self._lookups if lookup.rows.grad is not None]
        self._forget_old()
        self._lookups = [lookup for lookup in self._lookups if lookup.rows.grad is None]
        ids = [lookup.ids for lookup in done]
        gradients = [_on_cpu(lookup.rows.grad) for lookup in done]
        if len(done) < 2:
            return (ids[0], gradients[0]) if done else (torch.empty(0, dtype=torch.int64), torch.empty(0, self.width))
        different, places = torch.unique(torch.cat(ids), sorted=True, return_inverse=True)
        return different, torch.zeros(different.numel(), self.width).index_add_(0, places, torch.cat(gradients))

    def forget_gradients(self) -> None:
        """Sets the gradients to 0. Lookups since the last call may still be followed by backward()."""
        for lookup in self._lookups:
            lookup.rows.grad = None
        self._forget_old()

    def _forget_old(self) -> None:
        self._lookups = [lookup for lookup in self._lookups if not lookup.is_old or lookup.rows.grad is not None]
        for lookup in self._lookups:
            lookup.is_old = True


class RemoteEmbeddingBag(RemoteEmbedding):
    """Takes the place of torch.nn.EmbeddingBag: the mean or the sum of the rows of each bag."""

    def __init__(self, width: int, *, mode: str = "mean", **table: Any) -> None:
        """`mode` is "mean" or "sum"; the others are those of RemoteEmbedding."""
        super().__init__(width, **table)
        if mode not in ("mean", "sum"):
            raise ModelError(f"mode is {mode!r}, expected mean or sum")
        self.mode = mode

    def forward(self, ids: torch.Tensor,  # pylint: disable=arguments-differ
                offsets: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns [bags, width]: `ids` has the ids of all bags, and `offsets` where each begins; or [bags, ids]."""
        rows, places = self._look_up(ids)
        if not ids.numel():
            bags = len(ids) if offsets is None else len(offsets)
            return rows.new_zeros((bags, self.width))
        return torch.nn.functional.embedding_bag(places, rows, offsets, mode=self.mode)


def _checked(ids: torch.Tensor) -> torch.Tensor:
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise ModelError(f"an embedding got ids of {ids.dtype}, expected int64")
    return ids.to(torch.int64)


def _on_cpu(gradient: Optional[torch.Tensor]) -> torch.Tensor:
    assert gradient is not None
    return gradient.detach().to("cpu", torch.float32).contiguous()


def embeddings_of(model: Optional[torch.nn.Module]) -> Dict[str, RemoteEmbedding]:
    """Returns the embeddings of a model by their paths. One with several paths is there once, under the first."""
    if model is None:
        return {}
    return {name: module for name, module in model.named_modules() if isinstance(module, RemoteEmbedding)}
