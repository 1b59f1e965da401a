"""Sluice: a parameter server for PyTorch.

    job = sluice.start()                       # mpirun, srun, or SLUICE_SERVER=host:port; rank 0 serves
    if job.is_server: sys.exit(job.serve())
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), job, model)

The rest of the training loop stays as it is. Another program can evaluate the model meanwhile:

    for step in sluice.follow(model, server="host:port"): print(step, accuracy(model))
"""

from typing import TYPE_CHECKING, Any

from sluice.errors import DivergedError, ModelError, RemoteError, ServerGoneError
from sluice.job import Job, start

__all__ = ["DistributedOptimizer", "DistributedSampler", "DivergedError", "Job", "ModelError", "RemoteEmbedding",
           "RemoteEmbeddingBag", "RemoteError", "Round",
           "ServerGoneError", "follow", "load_checkpoint", "load_table", "start"]

if TYPE_CHECKING:
    from sluice.checkpoint import load_checkpoint, load_table
    from sluice.embedding import RemoteEmbedding, RemoteEmbeddingBag
    from sluice.follower import follow
    from sluice.optimizer import DistributedOptimizer, Round
    from sluice.sampler import DistributedSampler

_WITH_TORCH = {"DistributedOptimizer": "optimizer", "Round": "optimizer", "DistributedSampler": "sampler",
               "RemoteEmbedding": "embedding", "RemoteEmbeddingBag": "embedding", "follow": "follower",
               "load_checkpoint": "checkpoint", "load_table": "checkpoint"}


def __getattr__(name: str) -> Any:
    """Imports what needs torch when it is used: a server's process, which does not train, then starts faster."""
    if name in _WITH_TORCH:
        import importlib  # pylint: disable=import-outside-toplevel
        return getattr(importlib.import_module(f"sluice.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module 'sluice' has no attribute '{name}'")
