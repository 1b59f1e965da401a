"""Reads the checkpoints that one server or several save."""

import contextlib
import ctypes
import math
import os
from typing import Dict, Iterator, List, Tuple, Union

import torch

from sluice import _library, memory
from sluice._library import library
from sluice.constants import type_named

_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64)  # by SLUICE_FLOAT32 …

Path = Union[str, "os.PathLike[str]"]


def load_checkpoint(path: Path) -> Dict[str, torch.Tensor]:
    """Returns the model's tensors of a checkpoint by name, also those that are not trained.

    model.load_state_dict(…, strict=False) takes them. A tensor with several names (tied parameters) has its first, and
    tensors that each worker keeps for itself are missing, such as sparse ones.

    They have the types and the bits that `sluicectl checkpoint export` writes. Every byte of the files is checked. The
    rows of tables are in load_table().

    Args:
      path: the checkpoint's file, or the servers' --checkpoint-dir: then its newest checkpoint. If each of several
        servers had a directory of its own, those of the others follow that of the first one, with commas between:
        "run0,run1,run2".

    Raises:
      FileNotFoundError: there is no such file, or the directory has no checkpoint.
      ValueError: it is not a checkpoint, or a file of it is missing, damaged, or of another one; the message names it.
    """
    with _opened(path) as handle:
        model = library.sluice_checkpoint_model(handle).contents
        entries = [_entry(model.tensors[i]) for i in range(model.count)]
        values = memory.floats(sum(math.prod(shape) for _, shape, _ in entries))
        _check(library.sluice_checkpoint_read(handle, memory.address_of(values, torch.float32, *values.shape)))
        tensors = _constants(handle)
    offset = 0
    for name, shape, kind in entries:
        count = math.prod(shape)
        value = values[offset:offset + count].reshape(shape)
        offset += count
        # What no batch has changed has the bits of its own type.
        if name not in tensors or not torch.equal(tensors[name].to(torch.float32), value):
            tensors[name] = (value.round() if kind == torch.int64 else value).to(kind, copy=True)
    return tensors


def _constants(handle: ctypes.c_void_p) -> Dict[str, torch.Tensor]:
    found, count = ctypes.POINTER(_library.Constant)(), ctypes.c_size_t()
    _check(library.sluice_checkpoint_read_constants(handle, ctypes.byref(found), ctypes.byref(count)))
    tensors = {}
    for constant in found[:count.value] if count.value else []:
        shape = [constant.shape[i] for i in range(constant.dimensions)]
        tensor = torch.empty(shape, dtype=type_named(constant.type.decode()), device="cpu")
        if tensor.numel():
            ctypes.memmove(tensor.data_ptr(), constant.data, tensor.numel() * tensor.element_size())
        tensors[constant.name.decode()] = tensor
    return tensors


def load_table(path: Path, name: str) -> Tuple[torch.Tensor, torch.Tensor]:
    """Returns the rows of a table in a checkpoint: their ids, ascending, and a tensor with a row for each id.

    Rows that no gradient has touched are not saved. `sluicectl table export` also writes the optimizer's slots.

    Args:
      path: as for load_checkpoint().
      name: the table's, for example that of the RemoteEmbedding in the model.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      ValueError: as in load_checkpoint(), or the checkpoint has no such table; the message names those that it has.
    """
    with _opened(path) as handle:
        saved = _library.SavedRows()
        code = library.sluice_checkpoint_read_table(handle, name.encode(), ctypes.byref(saved))
        if code == _library.NOT_FOUND:
            raise ValueError(str(_library.last_error(code)))
        _check(code)
        ids, rows = memory.whole_numbers(saved.count), memory.floats(saved.count, saved.width)
        ctypes.memmove(memory.address_of(ids, torch.int64, saved.count), saved.ids, saved.count * 8)
        ctypes.memmove(memory.address_of(rows, torch.float32, saved.count, saved.width), saved.rows, rows.numel() * 4)
    if saved.count and int(ids.min()) < 0:
        raise ValueError(f"the table {name} has ids of 2^63 and more, which no tensor of PyTorch holds; write it to a file "
                         "with: sluicectl table export")
    return ids, rows


def _entry(tensor: _library.Tensor) -> Tuple[str, List[int], torch.dtype]:
    return tensor.name.decode(), [tensor.shape[i] for i in range(tensor.dimensions)], _TYPES[tensor.type]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[ctypes.c_void_p]:
    handle = ctypes.c_void_p()
    _check(library.sluice_checkpoint_open(os.fsencode(path), ctypes.byref(handle)))
    try:
        yield handle
    finally:
        library.sluice_checkpoint_free(handle)


def _check(code: int) -> None:
    """Raises what Python calls an error of files."""
    if code == _library.OK:
        return
    message = str(_library.last_error(code))
    if code == _library.NOT_FOUND:
        raise FileNotFoundError(message)
    if code in (_library.UNAVAILABLE, _library.RESOURCE_EXHAUSTED):  # the disk, or the memory
        raise OSError(message)
    raise ValueError(message)
