"""What the server's optimizer remembers, as the state of PyTorch's own."""

import copy
from typing import Any, Dict, Mapping

import torch

from sluice import memory
from sluice.model import FlatModel
from sluice.program_optimizer import OptimizerState

# How PyTorch computes, and what its AdamW says of itself: these change no state.
_WITHOUT_STATE = {"foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"}


def state_dict_of(optimizer: torch.optim.Optimizer, flat: FlatModel, of_program: bool, slots: Mapping[str, torch.Tensor],
                  steps: int) -> Dict[str, Any]:
    """Returns the state_dict() that `optimizer` would have if it had made the server's steps itself.

    Args:
      of_program: whether the server steps with the program's optimizer.
      slots: what the server remembers: vectors of float32, [elements], by PyTorch's names. Taken over.
      steps: those that the server's optimizer has made.
    """
    whole: Dict[str, Any] = optimizer.state_dict()
    if steps == 0:
        return whole
    if of_program:
        return _of_program(optimizer, flat, torch.cat([*slots.values(), memory.floats(0)]))
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


def _of_program(optimizer: torch.optim.Optimizer, flat: FlatModel, vector: torch.Tensor) -> Dict[str, Any]:
    """`vector`: the state as OptimizerState has written it on the server."""
    made = []
    for _ in range(2):  # the first shows what it remembers
        probe = copy.deepcopy(optimizer)
        probes = {id(own): other for group, others in zip(optimizer.param_groups, probe.param_groups)
                  for own, other in zip(group["params"], others["params"])}
        trained = []
        for member in flat.members:
            if member.is_parameter:
                trained.append(probes[id(member.tensor)])
                trained[-1].data = memory.floats(*member.tensor.shape)  # as on the server
        for parameter in probes.values():
            parameter.grad = None
        made.append((probe, trained))
    OptimizerState(*made[0]).load(vector, *made[1])
    probe = made[1][0]
    whole: Dict[str, Any] = probe.state_dict()
    for number, tensor in zip((one for group in whole["param_groups"] for one in group["params"]),
                              (one for group in optimizer.param_groups for one in group["params"])):
        own = whole["state"].get(number, {})
        for key, value in own.items():
            if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.shape == tensor.shape:
                own[key] = value.to(tensor.device, tensor.dtype, copy=True)
    for told, group in zip(whole["param_groups"], optimizer.param_groups):
        told["lr"] = group["lr"]
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
