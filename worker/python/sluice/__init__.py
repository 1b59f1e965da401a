"""Sluice: a parameter server for PyTorch.

    job = sluice.start()                       # mpirun, srun, or SLUICE_SERVER=host:port; rank 0 serves
    if job.is_server: sys.exit(job.serve())
    optimizer = sluice.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), job, model)

The rest of the training loop stays as it is.
"""

from sluice.errors import DivergedError, ModelError, RemoteError, ServerGoneError
from sluice.job import Job, start

__all__ = ["DistributedOptimizer", "DistributedSampler", "DivergedError", "Job", "ModelError", "RemoteError", "Round",
           "ServerGoneError", "load_checkpoint", "start"]

_WITH_TORCH = {"DistributedOptimizer": "optimizer", "Round": "optimizer", "DistributedSampler": "sampler",
               "load_checkpoint": "checkpoint"}


def __getattr__(name):
    """Imports what needs torch when it is used: a server's process, which does not train, then starts faster."""
    if name in _WITH_TORCH:
        import importlib  # pylint: disable=import-outside-toplevel
        return getattr(importlib.import_module(f"sluice.{_WITH_TORCH[name]}"), name)
    raise AttributeError(f"module 'sluice' has no attribute '{name}'")
