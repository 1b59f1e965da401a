"""Tensors on their way between a trainer and a model server."""

import ctypes
import math
from typing import Any, List, Optional, Sequence

import torch

from sluice import _library

# As in module_server.proto.
_ELEMENTS = {torch.float32: 1, torch.float64: 2, torch.float16: 3, torch.bfloat16: 4, torch.int64: 5, torch.int32: 6, torch.uint8: 7,
             torch.bool: 8}
_TYPES = {number: dtype for dtype, number in _ELEMENTS.items()}


class SentTensors:
    """Tensors as the library reads them: `array`, of `count`, which shows memory that this object keeps."""

    def __init__(self, tensors: Sequence[torch.Tensor], wants_gradient: Sequence[bool] = (), names: Sequence[str] = ()) -> None:
        """Raises ValueError of a tensor that cannot be sent."""
        self.count = len(tensors)
        self.array = (_library.ModuleTensor * max(1, self.count))()
        self._kept: List[torch.Tensor] = []
        for place, tensor in enumerate(tensors):
            if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.dtype not in _ELEMENTS:
                raise ValueError(f"a remote module takes dense tensors of real numbers, integers and bool; found {_kind_of(tensor)}")
            dense = tensor.detach().to("cpu").contiguous()
            self._kept.append(dense)
            told = self.array[place]
            told.name = names[place].encode() if names else None
            told.element = _ELEMENTS[dense.dtype]
            told.shape = (ctypes.c_int64 * max(1, dense.dim()))(*dense.shape)
            told.dimensions = dense.dim()
            told.requires_grad = int(bool(wants_gradient and wants_gradient[place]))
            told.data = dense.data_ptr()
            told.size = dense.numel() * dense.element_size()


def _kind_of(value: Any) -> str:
    return f"one of {value.dtype}, {value.layout}" if isinstance(value, torch.Tensor) else type(value).__name__


def received(told: _library.ModuleTensor) -> torch.Tensor:
    """Returns a copy of a tensor that the library shows, on the CPU."""
    shape = [told.shape[place] for place in range(told.dimensions)]
    tensor = torch.empty(shape, dtype=_TYPES[told.element], device="cpu")
    size = math.prod(shape) * tensor.element_size()
    if size != told.size:
        raise ValueError(f"a tensor of shape {shape} and {tensor.dtype} has {told.size} bytes, expected {size}")
    if size:
        ctypes.memmove(tensor.data_ptr(), told.data, size)
    return tensor


def all_received(array: Any, count: int, device: Optional[torch.device] = None) -> List[torch.Tensor]:
    tensors = [received(array[place]) for place in range(count)]
    return tensors if device is None else [tensor.to(device) for tensor in tensors]
