"""Tensors whose memory the library reads and writes. Their types do not depend on PyTorch's defaults."""

import ctypes

import torch


def floats(*shape: int) -> torch.Tensor:
    """Returns zeros of float32 in the CPU's memory."""
    return torch.zeros(shape, dtype=torch.float32, device="cpu")


def whole_numbers(*shape: int) -> torch.Tensor:
    """Returns zeros of int64 in the CPU's memory."""
    return torch.zeros(shape, dtype=torch.int64, device="cpu")


def view_of(address: int, size: int) -> torch.Tensor:
    """Returns a tensor of float32, [size], of memory that the library keeps as long as it is used."""
    if size == 0:  # frombuffer() takes no memory without elements
        return floats(0)
    return torch.frombuffer((ctypes.c_float * size).from_address(address), dtype=torch.float32)


def address_of(tensor: torch.Tensor, dtype: torch.dtype, *shape: int) -> int:
    """Returns where the elements of `tensor` lie. All memory that the library gets goes through here.

    Raises:
      TypeError: the library would read or write outside of the tensor's memory, or another type.
    """
    seen = (tensor.dtype, tensor.device.type, tuple(tensor.shape), tensor.is_contiguous())
    if seen != (dtype, "cpu", shape, True):
        contiguous = "contiguous" if seen[3] else "not contiguous"
        raise TypeError(f"the library got a tensor of {seen[0]} on {seen[1]} of shape {list(seen[2])}, {contiguous}; expected "
                        f"{dtype} on cpu of shape {list(shape)}, contiguous")
    address: int = tensor.data_ptr()
    return address
