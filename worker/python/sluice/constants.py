"""The tensors of a model that are not trained. The first worker's become those of all workers, and the server saves them."""

import ctypes
import warnings
from typing import Any, Dict, List, Set, Tuple

import torch

from sluice import _library, memory
from sluice.model import Named, own_buffers

# Their names in safetensors. Some versions of PyTorch lack some of them.
_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "float16": "F16", "bfloat16": "BF16",
    "uint32": "U32", "int32": "I32", "float32": "F32", "uint64": "U64", "int64": "I64", "float64": "F64",
    "complex64": "C64", "complex128": "C128", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"
}
_TYPES: Dict[torch.dtype, str] = {getattr(torch, kind): name for kind, name in _NAMES.items() if hasattr(torch, kind)}


def named_constants(model: torch.nn.Module, parameters: Named, statistics: Named) -> Named:
    """Returns (name, tensor) of what is neither trained nor averaged: frozen parameters, and the other buffers.

    A statistic of float64 is among them, too: the vector has its first value in float32 only. Buffers that are no part of
    the model's state (persistent=False) stay each worker's own, and so do sparse and quantized tensors.
    """
    known = {id(tensor) for _, tensor in parameters}
    known |= {id(tensor) for _, tensor in statistics if tensor.dtype != torch.float64}
    own = own_buffers(model)
    tensors: List[Tuple[str, torch.Tensor]] = [*model.named_parameters()]
    tensors += [(name, buffer) for name, buffer in model.named_buffers() if name not in own]
    return [(name, tensor) for name, tensor in tensors if id(tensor) not in known and _has_memory(tensor)]


def type_named(name: str) -> torch.dtype:
    """Returns the type with that name in safetensors."""
    for dtype, known in _TYPES.items():
        if known == name:
            return dtype
    raise ValueError(f"a tensor has elements of type {name}, which this version of PyTorch does not have; use a later one")


class Constants:
    """Gives the library the memory of these tensors. Of those on a GPU, or with gaps, it is that of a copy."""

    def __init__(self, named: Named) -> None:
        self._named = named
        self._memory = [tensor.detach().to("cpu").contiguous() for _, tensor in named]
        self._frozen = [(name, tensor) for name, tensor in named if isinstance(tensor, torch.nn.Parameter)]
        self._versions: List[int] = []

    @property
    def frozen(self) -> Set[int]:
        """The id() of each parameter among them."""
        return {id(tensor) for _, tensor in self._frozen}

    def tell(self, function: Any, handle: ctypes.c_void_p) -> None:
        """Calls sluice_set_constants(), or that of a follower."""
        constants = (_library.Constant * max(1, len(self._named)))()
        for constant, (name, tensor), values in zip(constants, self._named, self._memory):
            constant.name = name.encode()
            constant.shape = (ctypes.c_uint64 * max(1, tensor.dim()))(*tensor.shape)
            constant.dimensions = tensor.dim()
            constant.type = _TYPES[tensor.dtype].encode()
            constant.data = memory.address_of(values, tensor.dtype, *tensor.shape) or None
        if self._named:
            _library.check(function(handle, constants, len(self._named)))

    @torch.no_grad()
    def take(self) -> None:
        """Copies what the library has written to the tensors that do not lie there."""
        for (_, tensor), values in zip(self._named, self._memory):
            if tensor.data_ptr() != values.data_ptr():
                tensor.copy_(values)
        self._versions = [_version(tensor) for _, tensor in self._frozen]

    def warn_if_trained(self) -> None:
        """Warns, once, of a frozen parameter that the program changes: the server would keep its first value."""
        for (name, tensor), version in zip(self._frozen, self._versions):
            if _version(tensor) != version:
                self._versions = []
                warnings.warn(f"{name} requires no gradient, and the program changes it: workers and checkpoints keep the value "
                              "that it had when it was given to Sluice. Register it as a buffer, and workers average it")
                return


def _has_memory(tensor: torch.Tensor) -> bool:
    repeats = any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)) \
        if tensor.layout == torch.strided else True
    return tensor.dtype in _TYPES and not repeats


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version  # pylint: disable=protected-access
