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
_inference_mode: Any = torch.inference_mode  # without types in PyTorch 1.13
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
    return [(name, tensor) for name, tensor in tensors
            if id(tensor) not in known and tensor.layout == torch.strided and tensor.dtype in _TYPES]


def type_named(name: str) -> torch.dtype:
    """Returns the type with that name in safetensors."""
    for dtype, known in _TYPES.items():
        if known == name:
            return dtype
    raise ValueError(f"a tensor has elements of type {name}, which this version of PyTorch does not have; use a later one")


class Constants:
    """Gives the library the memory of these tensors. Of those on a GPU, or with gaps, it is that of a copy."""

    def __init__(self, named: Named, shares: bool = True) -> None:
        """`shares`: the library may write to the tensors' own memory. It does so in the join and in pushes only."""
        self._named = named
        self._memory = [_in_memory(tensor, shares) for _, tensor in named]
        self._samples: List[torch.Tensor] = []  # of the values that were taken
        self._written = -1  # how often the library had written when they were
        self._looks = 0

    @property
    def frozen(self) -> Set[int]:
        """The id() of each parameter among them."""
        return {id(tensor) for _, tensor in self._named if isinstance(tensor, torch.nn.Parameter)}

    @property
    def buffers(self) -> List[torch.Tensor]:
        """Those among them that are no parameters."""
        return [tensor for _, tensor in self._named if not isinstance(tensor, torch.nn.Parameter)]

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

    def __bool__(self) -> bool:
        return bool(self._named)

    def take(self, written: int) -> None:
        """Copies what the library has written, that often, to the tensors that do not lie there."""
        if written == self._written:
            return
        self._written = written
        for (_, tensor), values in zip(self._named, self._memory):
            if any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)):
                tensor.data = values.to(tensor.device)  # it repeats elements, to which nothing can be copied
            elif tensor.data_ptr() != values.data_ptr():
                with _inference_mode(tensor.is_inference()), torch.no_grad():
                    tensor.copy_(values)
        self._samples = [_sample(tensor) for _, tensor in self._named]

    def warn_of_changes(self) -> None:
        """Warns, once, of a tensor that the program changes. Looks at the steps 1, 2, 4, 8 and so on, and at some elements."""
        self._looks += 1
        if self._looks & (self._looks - 1) or not self._samples:
            return
        for (name, tensor), before in zip(self._named, self._samples):
            if not torch.equal(_sample(tensor), before):
                self._samples = []
                warnings.warn(f"{name} is not trained, and the program changes it: this worker keeps its own value, and "
                              "checkpoints keep the value that it had when it was given to Sluice. Register it as a buffer of "
                              "real and finite numbers, and workers average it")
                return


def _in_memory(tensor: torch.Tensor, shares: bool) -> torch.Tensor:
    values = tensor.detach().resolve_conj().resolve_neg()
    return values.to("cpu", copy=not shares and values.device.type == "cpu").contiguous()


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bits of at most 1024 elements."""
    flat = tensor.detach().resolve_conj().resolve_neg().flatten()
    some = flat[::max(1, flat.numel() // 1024)].clone()
    return some.view(torch.uint8) if some.dtype != torch.bool else some
