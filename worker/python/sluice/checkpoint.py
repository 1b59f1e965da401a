"""Reads the checkpoints that a server saves, which are safetensors files."""

import json
import math
import mmap
import os
import struct
from typing import Any, Dict, List, Union

import torch

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "U8": torch.uint8}
_OWN = "sluice:"  # the server's own tensors begin with this
_STATE = "sluice"  # in the metadata of a server's checkpoint; that of several servers has no tensors
_STRIPE = "sluice:stripe"  # in the metadata of one server's part


def load_checkpoint(path: "Union[str, os.PathLike[str]]") -> Dict[str, torch.Tensor]:
    """Returns the model's tensors of a checkpoint by name, for model.load_state_dict(…, strict=False).

    Args:
      path: a file, or the server's --checkpoint-dir: then its newest checkpoint.

    Raises:
      FileNotFoundError: the directory has no checkpoint.
      ValueError: the file is not a checkpoint, or was cut, or is one of several servers' checkpoint.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        path = _newest(path)
    with open(path, "rb") as file:
        # Only what is read of the mapping comes into memory: the optimizer's tensors stay on disk.
        data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if os.path.getsize(path) else b""
    if len(data) < 8:
        raise ValueError(f"{path} has {len(data)} bytes, expected a safetensors file; was it cut?")
    (size,) = struct.unpack_from("<Q", data)
    try:
        header = json.loads(data[8:8 + size])
        entries = {name: (_TYPES[entry["dtype"]], [int(side) for side in entry["shape"]],
                          [int(place) for place in entry["data_offsets"]])
                   for name, entry in header.items() if name != "__metadata__" and not name.startswith(_OWN)}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} does not begin with the header of a safetensors file of Sluice") from error
    metadata = header.get("__metadata__", {})
    if (not entries and _STATE in metadata) or _STRIPE in metadata:
        raise ValueError(f"{path} is one of the files of a checkpoint of several servers; write the tensors to one file "
                         "for torch.load() with: sluicectl checkpoint export checkpoint-….safetensors model.pt")
    return {name: _tensor(path, data, 8 + size, name, *entry) for name, entry in entries.items()}


def _tensor(path: str, data: Any, base: int, name: str, kind: torch.dtype, shape: List[int],
            place: List[int]) -> torch.Tensor:
    """Returns a tensor of that type and shape, whose bytes lie at `place`, [begin, end), after `base`."""
    count = math.prod(shape)
    size = count * torch.empty(0, dtype=kind).element_size()
    if len(place) != 2 or place[0] < 0 or min(shape, default=0) < 0 or place[1] - place[0] != size:
        raise ValueError(f"{path} has {name} of shape {shape} at bytes {place}, expected {size} bytes")
    if base + place[1] > len(data):
        raise ValueError(f"{path} ends within {name}; was it cut?")
    if count == 0:
        return torch.empty(shape, dtype=kind)
    return torch.frombuffer(data, dtype=kind, count=count, offset=base + place[0]).reshape(shape).clone()


def _newest(folder: str) -> str:
    """Returns the checkpoint of the highest step; of two with one step, that of the later incarnation."""
    found = []
    for name in os.listdir(folder):
        stem, extension = os.path.splitext(name)
        parts = stem.split("-")
        if extension == ".safetensors" and parts[0] == "checkpoint" and parts[-1].isdigit():
            path = os.path.join(folder, name)
            found.append((int(parts[-1]), os.path.getmtime(path), path))
    if not found:
        raise FileNotFoundError(f"{folder} has no checkpoint (checkpoint-*.safetensors)")
    return max(found)[-1]
