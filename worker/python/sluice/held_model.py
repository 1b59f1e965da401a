"""A model that the workers step, and the server does not have: what a worker hands to one that comes late."""

import ctypes
import logging
import warnings
from typing import Any, List, Optional

import torch

from sluice import _library, plain_data
from sluice.errors import ModelError
from sluice.model import FlatModel


# What schedulers of PyTorch write into a group; the rest of it may be state.
_SCHEDULED = {"params", "lr", "initial_lr", "max_lr", "min_lr", "momentum", "base_momentum", "max_momentum", "betas"}


class HeldModel:
    """Writes the model for the library, and takes that of another worker.

    It has the parameters, and the state of the optimizer's state_dict(), as plain_data.

    Attributes:
      save, load: the functions for sluice_set_model(). A thread of the library calls them, and gets the interpreter's
        lock, since waiting gives that up.
      errors: what has gone wrong in them, which that thread cannot raise.
      has_taken: whether take() has taken a model.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, flat: FlatModel) -> None:
        self._optimizer = optimizer
        self._flat = flat
        self._written = b""  # what the library reads
        self._others: Optional[bytes] = None
        self.errors: List[BaseException] = []
        self.save = _library.SaveModel(self._save)
        self.load = _library.LoadModel(self._load)
        self._checked = False
        self.has_taken = False

    def _save(self, _context: Optional[int], to: Any, size: Any) -> int:
        try:
            whole = self._optimizer.state_dict()
            self._written = plain_data.to_bytes({"parameters": self._parameters(), "state": whole["state"],
                                                 "groups": whole["param_groups"]})
        except BaseException as error:  # pylint: disable=broad-except
            logging.getLogger("sluice").warning("%s", error)  # it is the other worker's, and not this one's
            return 1
        to[0] = ctypes.cast(ctypes.c_char_p(self._written), ctypes.c_void_p).value
        size[0] = len(self._written)
        return 0

    def _load(self, _context: Optional[int], content: int, size: int) -> int:
        try:
            self._others = bytes((ctypes.c_char * size).from_address(content))
        except BaseException as error:  # pylint: disable=broad-except
            self.errors.append(error)
            return 1
        return 0

    @property
    def is_there(self) -> bool:
        """Whether another worker's model has come, and was not taken."""
        return self._others is not None

    def _parameters(self) -> List[torch.Tensor]:
        return [member.tensor for member in self._flat.members if member.is_parameter]

    def check(self) -> None:
        """Warns, once, after the first step, of a state that could not be handed to a worker that comes late."""
        if self._checked:
            return
        self._checked = True
        try:
            plain_data.check(self._optimizer.state_dict())
        except TypeError as error:
            warnings.warn(f"the optimizer's state_dict() cannot be handed to a worker that comes late: {error}")

    def forget(self) -> None:
        """Frees what was written for the library, which has read it."""
        self._written = b""

    def take(self) -> bool:
        """Takes the model that another worker has sent since the last call. Returns whether there was one.

        What schedulers of PyTorch write into the groups, such as the rate, stays this program's, and so does its scheduler.
        """
        if self._others is None:
            return False
        try:
            saved = plain_data.from_bytes(self._others)
        except Exception as error:
            raise ModelError(f"the model of another worker cannot be read ({type(error).__name__}: {error}); start all workers "
                             "with one version of the program") from error
        with torch.no_grad():
            for parameter, value in zip(self._parameters(), saved["parameters"]):
                parameter.copy_(value)
        groups = self._optimizer.state_dict()["param_groups"]
        for group, others in zip(groups, saved["groups"]):
            group.update({name: value for name, value in others.items() if name not in _SCHEDULED})
        whole = {"state": saved["state"], "param_groups": groups}
        self._optimizer.load_state_dict(whole)
        # PyTorch has given most tensors the type of their parameter. Here each keeps its own.
        indices = [index for group in whole["param_groups"] for index in group["params"]]
        tensors = [tensor for group in self._optimizer.param_groups for tensor in group["params"]]
        for index, tensor in zip(indices, tensors):
            own = self._optimizer.state.get(tensor, {})
            for name, value in saved["state"].get(index, {}).items():
                if isinstance(value, torch.Tensor) and own[name].dtype != value.dtype:
                    own[name] = value.to(own[name].device)
        self._others = None
        self.has_taken = True
        return True

