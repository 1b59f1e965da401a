"""What the server's optimizer remembers, as the state of PyTorch's own."""

import copy
from typing import Any, Dict, Mapping

import torch

from sluice.model import FlatModel

# How PyTorch computes, and what its AdamW says of itself: these change no state.
_WITHOUT_STATE = {"foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"}


def state_dict_of(optimizer: torch.optim.Optimizer, flat: FlatModel, slots: Mapping[str, torch.Tensor],
                  steps: int) -> Dict[str, Any]:
    """Returns the state_dict() that `optimizer` would have if it had made the server's steps itself.

    Args:
      slots: what the server remembers: vectors of float32, [elements], by PyTorch's names. Taken over.
      steps: those that the server's optimizer has made.
    """
    whole: Dict[str, Any] = optimizer.state_dict()
    if steps == 0:
        return whole
    members = {id(member.tensor): member for member in flat.members}
    for numbered, group in zip(whole["param_groups"], optimizer.param_groups):
        form = _form_of(optimizer, group)
        for index, tensor in zip(numbered["params"], group["params"]):
            if id(tensor) in members:  # else it is not trained
                member = members[id(tensor)]
                own = {name: vector[member.offset:member.end].view(tensor.shape).to(tensor.device, tensor.dtype, copy=True)
                       for name, vector in slots.items()}
                whole["state"][index] = {name: _counted(value, steps) if name == "step" else own.get(name, value)
                                         for name, value in form.items()}
    return whole


def _counted(form: Any, steps: int) -> Any:
    return torch.full_like(form, steps) if isinstance(form, torch.Tensor) else steps


def _form_of(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the state of one parameter after one step of PyTorch's own: which names, and of which types."""
    probe = torch.nn.Parameter(torch.zeros(1))
    probe.grad = torch.zeros(1)
    options = {name: copy.copy(value) for name, value in group.items()
               if name in optimizer.defaults and name not in _WITHOUT_STATE}
    alone = type(optimizer)([probe], **options)
    alone.step()
    form: Dict[str, Any] = alone.state[probe]
    return form
