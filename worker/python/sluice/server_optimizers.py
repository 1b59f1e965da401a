"""Which optimizers the server steps with, and their options there."""

import zlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch

from sluice.embedding import RemoteEmbedding
from sluice.errors import ModelError

# PyTorch's optimizers, with the names of their options on the server. Any other option must have the value that is
# given here: the server does not have it.
OPTIMIZERS: Dict[Any, Tuple[str, Dict[str, Any]]] = {
    torch.optim.SGD: ("sgd", {"lr": "learning_rate", "momentum": "momentum", "dampening": "dampening",
                              "weight_decay": "weight_decay", "nesterov": "nesterov"}),
    torch.optim.Adam: ("adam", {"lr": "learning_rate", "betas": ("beta1", "beta2"), "eps": "eps",
                                "weight_decay": "weight_decay", "amsgrad": "amsgrad"}),
    torch.optim.AdamW: ("adamw", {"lr": "learning_rate", "betas": ("beta1", "beta2"), "eps": "eps",
                                  "weight_decay": "weight_decay", "amsgrad": "amsgrad"}),
    torch.optim.Adagrad: ("adagrad", {"lr": "learning_rate", "lr_decay": "lr_decay", "weight_decay": "weight_decay",
                                      "initial_accumulator_value": "initial_accumulator_value", "eps": "eps"}),
    torch.optim.RMSprop: ("rmsprop", {"lr": "learning_rate", "alpha": "alpha", "eps": "eps",
                                      "weight_decay": "weight_decay", "momentum": "momentum", "centered": "centered"}),
}
# How PyTorch computes, which does not matter here.
_WITHOUT_MEANING = {"params", "foreach", "capturable", "differentiable", "fused"}
# What an optimizer always does: PyTorch 2.7 makes AdamW an Adam with this option.
_IMPLIED = {(torch.optim.AdamW, "decoupled_weight_decay")}
Groups = Dict[Tuple[str, ...], Dict[str, float]]  # options by the names of their parameters
ServerOptimizer = Tuple[str, Mapping[str, float], Groups]  # its name there, its options, and those of groups


def options_of(kind: type, group: Mapping[str, Any]) -> Dict[str, float]:
    """Returns the server's options of an optimizer of PyTorch with these."""
    name, names = OPTIMIZERS[kind]
    options: Dict[str, float] = {}
    for key, value in group.items():
        if key in _WITHOUT_MEANING or (kind, key) in _IMPLIED:
            continue
        if key in names and isinstance(names[key], tuple):
            options.update(zip(names[key], value))
        elif key in names:
            options[names[key]] = float(value)
        elif value:
            raise ModelError(f"{kind.__name__} has {key}={value}, which the server's {name} does not have")
    return options


def groups_of(optimizer: torch.optim.Optimizer, of_program: bool) -> List[Dict[str, float]]:
    """Returns the server's options of each group; those of the program's optimizer there, if the server steps with that. What
    schedulers and programs note in it is no option."""
    kind = type(optimizer)
    groups = [{key: group[key] for key in optimizer.defaults if key in group} for group in optimizer.param_groups]
    if not of_program:
        return [options_of(kind, group) for group in groups]
    for group in optimizer.param_groups:
        if not isinstance(group.get("lr"), (int, float)):
            raise ModelError(f"the lr of {kind.__name__} is {group.get('lr')!r}, expected a number for the program's optimizer on the server")
    return [{"learning_rate": float(group["lr"]), "kind_crc32": kind_crc32(kind, options)}
            for group, options in zip(optimizer.param_groups, groups)]


def name_of(optimizer: torch.optim.Optimizer, of_program: bool) -> str:
    """Returns the server's name of the optimizer."""
    return "program" if of_program else OPTIMIZERS[type(optimizer)][0]


def kind_crc32(kind: type, group: Mapping[str, Any]) -> int:
    """Returns a checksum, at least 1, of an optimizer's class and its options but lr: those of a server and of the workers
    are to be equal. Options that are neither numbers nor texts, nor tuples and lists of those, do not count."""
    told = [f"{key}={_plain(value)!r}" for key, value in sorted(group.items())
            if key not in _WITHOUT_MEANING | {"lr"} and isinstance(value, (bool, int, float, str, tuple, list, type(None)))]
    return max(1, zlib.crc32(" ".join([kind.__qualname__, *told]).encode()))


def _plain(value: Any) -> Any:
    """Makes equal options equal in writing: 0 and 0.0, and a number of NumPy."""
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, (bool, int, float)) else value


def why_not_on_server(optimizer: torch.optim.Optimizer, of_program: bool) -> str:
    """Returns why the server cannot step with it; empty if it can. `of_program`: the program brings it there."""
    if type(optimizer) not in OPTIMIZERS and not of_program:
        names = ", ".join(known.__name__ for known in OPTIMIZERS)
        return (f"{type(optimizer).__name__} has no counterpart on the server, which has {names} and what "
                "sluice.start(server_optimizer=…) brings")
    if _has_stepped(optimizer, of_program):
        return "the optimizer has taken steps or was loaded, and the server would not have its state"
    try:
        groups_of(optimizer, of_program)
    except ModelError as error:
        return str(error)
    return ""


def _has_stepped(optimizer: torch.optim.Optimizer, of_program: bool) -> bool:
    if of_program:
        return any(optimizer.state.values())
    return any(float(state.get("step", 0)) > 0 or state.get("momentum_buffer") is not None
               for state in optimizer.state.values())


def table_optimizer(embedding: RemoteEmbedding) -> Tuple[Optional[str], Dict[str, float]]:
    """Returns the server's name and options of a table's own optimizer; without one, None."""
    if embedding.table_optimizer is None:
        return None, {}
    kind, options = embedding.table_optimizer
    if kind not in OPTIMIZERS:
        names = ", ".join(known.__name__ for known in OPTIMIZERS)
        raise ModelError(f"the optimizer of an embedding is {kind!r}, expected one of PyTorch's {names}")
    return OPTIMIZERS[kind][0], options_of(kind, options)
