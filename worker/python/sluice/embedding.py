"""Embeddings whose rows are on the server: no worker holds the table."""

import weakref
from typing import Any, Dict, List, Mapping, Optional, Protocol, Tuple

import torch

from sluice import _library, memory
from sluice.errors import ModelError

_INITIALIZERS = {"zero": 0, "uniform": 1, "normal": 2}
_DIVISORS = {"all": 0, "row": 1}

# Ids, [rows], int64, ascending, on the CPU; and their gradients, [rows, width].
_RowGradient = Tuple[torch.Tensor, torch.Tensor]


class RowSource(Protocol):
    """Where an embedding's rows come from: a DistributedOptimizer, or a Follower."""

    def pull_rows(self, table: int, ids: torch.Tensor, rows: torch.Tensor) -> None:
        """Writes the rows of `ids`, [rows], int64, ascending, to `rows`, [rows, width], float32."""

    def prefetch_rows(self, table: int, ids: torch.Tensor) -> None:
        """Begins to pull rows, which the table's next pull_rows() uses if it has the same `ids`."""


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
        self._source: "Optional[weakref.ref[RowSource]]" = None
        self._gradients: List[_RowGradient] = []  # of each backward() since forget_gradients()

    def __getstate__(self) -> Dict[str, Any]:
        # A copy has no rows: they are of the model that the DistributedOptimizer was made with.
        return {**self.__dict__, "_source": None, "_gradients": []}

    def extra_repr(self) -> str:
        return f"width={self.width}"

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Returns the rows of `ids`, which are whole numbers of any shape, as float32 in the shape [..., width].

        Raises:
          ModelError: an id is negative or no whole number, or the model has no DistributedOptimizer.
          RemoteError: the server refuses the pull, or is gone.
        """
        rows, places = self._look_up(ids)
        return torch.nn.functional.embedding(places.view(ids.shape), rows)

    def prefetch(self, ids: torch.Tensor) -> None:
        """Begins to pull the rows of `ids`, and returns at once. The next forward() uses them if it has the same ids.

        Their order and repetitions do not matter. If the next forward() has others, it pulls those, and the prefetch is
        given up. So it is when another prefetch() begins: an embedding has one. Rows that are older than the model's
        parameters when they are used are pulled again, so a prefetch changes no results. It saves the time of the pull
        if no step of the job comes between; `row_cache` lets rows be older. In sync, where each step changes all
        parameters, begin it after step(), while the batch is still being prepared. With several servers it is used if no
        other pull, of rows or by a step(), comes between.

        A Follower's rows come with the parameters, so there it does nothing.

        Raises:
          ModelError: as in forward().
          RemoteError: this worker has left. What goes wrong with the pull itself, the next forward() raises.
        """
        self._owner().prefetch_rows(self._index, _different(ids)[0])

    def _look_up(self, ids: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns the rows of the different ids, and for each id the number of its row."""
        different, places = _different(ids)
        rows = memory.floats(different.numel(), self.width)
        self._owner().pull_rows(self._index, different, rows)
        rows = rows.to(ids.device)
        if self.training and torch.is_grad_enabled():
            rows.requires_grad_()
            gradients = self._gradients  # not self: the graph would keep the module
            rows.register_hook(lambda gradient: gradients.append((different, gradient)))  # type: ignore[no-untyped-call]
        return rows, places

    def _owner(self) -> RowSource:
        owner = None if self._source is None else self._source()
        if owner is None:
            raise ModelError("an embedding has no rows before sluice.DistributedOptimizer(optimizer, job, model) was made "
                             "or sluice.follow(model) was called with its model, and none after that is gone")
        return owner

    # ---- For DistributedOptimizer and Follower ----

    def describe(self, name: str, optimizer: Tuple[Optional[str], Dict[str, float]]) -> _library.Table:
        """Returns the table for the library. `optimizer` is the server's name of its own, and options."""
        table = _library.Table(name.encode(), **self._table)
        if optimizer[0] is not None:
            table.optimizer = optimizer[0].encode()
            table.options, table.option_count = _library.options_of(optimizer[1])
        return table

    def bind(self, index: int, source: RowSource) -> None:
        """From now on rows come from `source`, whose table has that index. It is not kept alive."""
        self._index = index
        self._source = weakref.ref(source)
        self._gradients = []

    def gradient(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns ids, [rows], int64, ascending, and gradients, [rows, width], of what backward has reached."""
        ids = [ids for ids, _ in self._gradients]
        gradients = [_on_cpu(gradient) for _, gradient in self._gradients]
        if len(ids) < 2:
            return (ids[0], gradients[0]) if ids else (memory.whole_numbers(0), memory.floats(0, self.width))
        different, places = torch.unique(torch.cat(ids), sorted=True, return_inverse=True)
        return different, memory.floats(different.numel(), self.width).index_add_(0, places, torch.cat(gradients))

    def forget_gradients(self) -> None:
        """Sets the gradients to 0: after zero_grad(), and after a step that has pushed them.

        A forward before it may still be followed by backward().
        """
        self._gradients.clear()


class RemoteEmbeddingBag(RemoteEmbedding):
    """Takes the place of torch.nn.EmbeddingBag: the mean or the sum of the rows of each bag."""

    def __init__(self, width: int, *, mode: str = "mean", **table: Any) -> None:
        """`mode` is "mean" or "sum"; the others are those of RemoteEmbedding."""
        super().__init__(width, **table)
        if mode not in ("mean", "sum"):
            raise ModelError(f"mode is {mode!r}, expected mean or sum")
        self.mode = mode

    def prefetch(self, ids: torch.Tensor) -> None:
        """As that of RemoteEmbedding: `ids` are those of forward(), whose offsets do not matter."""
        if ids.dim() not in (1, 2):
            raise ModelError(f"an embedding bag got ids of {ids.dim()} dimensions, expected 1 or 2, as forward() gets")
        super().prefetch(ids)

    def forward(self, ids: torch.Tensor,  # pylint: disable=arguments-differ
                offsets: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns [bags, width]: `ids` has the ids of all bags, and `offsets` where each begins; or [bags, ids]."""
        offsets = _checked_bags(ids, offsets)
        rows, places = self._look_up(ids)
        if not ids.numel():
            bags = len(ids) if offsets is None else len(offsets)
            return rows.new_zeros((bags, self.width)) + rows.sum()  # the sum is 0, and has a graph
        return torch.nn.functional.embedding_bag(places, rows, offsets, mode=self.mode)


def _different(ids: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """Returns the different ids, ascending, on the CPU, and for each id the number of its place among them."""
    different, places = torch.unique(_checked(ids), sorted=True, return_inverse=True)
    different = different.cpu().contiguous()
    if different.numel() and int(different[0]) < 0:
        raise ModelError(f"an embedding got the id {int(different[0])}, expected ids from 0 on; give each item a number "
                         "that is not negative")
    return different, places


def _checked(ids: torch.Tensor, what: str = "ids") -> torch.Tensor:
    if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
        raise ModelError(f"an embedding got {what} of {ids.dtype}, expected int64; convert them with .to(torch.int64)")
    return ids.to(torch.int64)


def _checked_bags(ids: torch.Tensor, offsets: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """Returns the offsets as int64. PyTorch reads outside of the ids if offsets descend."""
    dimensions = 2 if offsets is None else 1
    if ids.dim() != dimensions:
        raise ModelError(f"an embedding bag got ids of {ids.dim()} dimensions, expected {dimensions}: [bags, ids], or "
                         "the ids of all bags and where each bag begins")
    if offsets is None:
        return None
    if offsets.dim() != 1:
        raise ModelError(f"an embedding bag got offsets of {offsets.dim()} dimensions, expected 1; flatten them")
    begins = _checked(offsets, "offsets")
    before = 0
    for bag, begin in enumerate(begins.tolist()):
        if (begin if bag == 0 else not before <= begin <= ids.numel()):
            expected = f"{before} to {ids.numel()}, the number of ids" if bag else "0"
            raise ModelError(f"an embedding bag got the offset {begin} of bag {bag}, expected {expected}")
        before = begin
    return begins


def _on_cpu(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.detach().to("cpu", torch.float32).contiguous()


def embeddings_of(model: Optional[torch.nn.Module]) -> Dict[str, RemoteEmbedding]:
    """Returns the embeddings of a model by their paths. One with several paths is there once, under the first."""
    if model is None:
        return {}
    return {name: module for name, module in model.named_modules() if isinstance(module, RemoteEmbedding)}
