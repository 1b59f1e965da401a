"""Reads the checkpoints that a server saves, which are safetensors files."""

import json
import mmap
import os
import struct

import torch

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "U8": torch.uint8}
_OWN = "sluice:"  # the server's own tensors begin with this


def load_checkpoint(path):
    """Returns the model's tensors of a checkpoint by name, for model.load_state_dict(…, strict=False).

    Args:
      path: a file, or the server's --checkpoint-dir: then its newest checkpoint.

    Raises:
      FileNotFoundError: the directory has no checkpoint.
      ValueError: the file is not a checkpoint, or was cut.
    """
    if os.path.isdir(path):
        path = _newest(path)
    with open(path, "rb") as file:
        # Only what is read of the mapping comes into memory: the optimizer's tensors stay on disk.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if os.path.getsize(path) else b""
    if len(data) < 8:
        raise ValueError(f"{path} has {len(data)} bytes, expected a safetensors file; was it cut?")
    (size,) = struct.unpack_from("<Q", data)
    try:
        header = json.loads(data[8:8 + size])
    except ValueError as error:
        raise ValueError(f"{path} does not begin with the header of a safetensors file") from error
    header.pop("__metadata__", None)
    return {name: _tensor(path, data, 8 + size, name, entry) for name, entry in header.items()
            if not name.startswith(_OWN)}


def _tensor(path, data, base, name, entry):
    begin, end = entry["data_offsets"]
    if base + end > len(data):
        raise ValueError(f"{path} ends within {name}; was it cut?")
    kind = _TYPES[entry["dtype"]]
    if begin == end:
        return torch.empty(entry["shape"], dtype=kind)
    count = (end - begin) // torch.empty(0, dtype=kind).element_size()
    return torch.frombuffer(data, dtype=kind, count=count, offset=base + begin).reshape(entry["shape"]).clone()


def _newest(folder):
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
