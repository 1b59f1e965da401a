"""Sluice: a parameter server for PyTorch.

    job = sluice.start()                       # mpirun, srun, or SLUICE_SERVER=host:port; rank 0 serves
    if job.is_server: sys.exit(job.serve())
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), job, model)

The rest of the training loop stays as it is. Another program can evaluate the model meanwhile:

    for step in sluice.follow(model, server="host:port"): print(step, accuracy(model))
"""

from pkgutil import extend_path
from typing import TYPE_CHECKING, Any, List

# So that `sluice.v1`, the code that protoc writes for the messages, is found in another folder.
__path__ = extend_path(__path__, __name__)

__all__ = ["DistributedOptimizer", "DistributedSampler", "DivergedError", "Job", "ModelError", "RemoteEmbedding",
           "RemoteEmbeddingBag", "RemoteError", "RemoteModule", "Round",
           "ServerGoneError", "follow", "load_checkpoint", "load_table", "run_server", "serve_module", "start"]

if TYPE_CHECKING:
    from sluice.checkpoint import load_checkpoint, load_table
    from sluice.client import Round
    from sluice.embedding import RemoteEmbedding, RemoteEmbeddingBag
    from sluice.errors import DivergedError, ModelError, RemoteError, ServerGoneError
    from sluice.follower import follow
    from sluice.job import Job, start
    from sluice.optimizer import DistributedOptimizer
    from sluice.remote_module import RemoteModule
    from sluice.sampler import DistributedSampler
    from sluice.served_module import serve_module
    from sluice.server import run_server

_MODULES = {"DistributedOptimizer": "optimizer", "Round": "client", "DistributedSampler": "sampler",
            "RemoteEmbedding": "embedding", "RemoteEmbeddingBag": "embedding", "follow": "follower",
            "load_checkpoint": "checkpoint", "load_table": "checkpoint", "Job": "job", "run_server": "server", "start": "job",
            "RemoteModule": "remote_module", "serve_module": "served_module",
            "DivergedError": "errors", "ModelError": "errors", "RemoteError": "errors", "ServerGoneError": "errors"}


def __getattr__(name: str) -> Any:
    """Imports what needs torch, or the library, when it is used: a server's process, which does not train, then starts
    faster, and a program that needs `sluice.v1` alone loads neither."""
    if name in _MODULES:
        import importlib  # pylint: disable=import-outside-toplevel
        return getattr(importlib.import_module(f"sluice.{_MODULES[name]}"), name)
    if name == "__version__":
        from sluice._library import library  # pylint: disable=import-outside-toplevel
        return library.sluice_version().decode()
    raise AttributeError(f"module 'sluice' has no attribute '{name}'")


def __dir__() -> List[str]:
    return sorted([*__all__, "__version__"])
