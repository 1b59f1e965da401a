"""Values as bytes that a process may take from another one: reading them runs no program."""

import io
import json
from typing import Any, Dict, List, Tuple

import torch


def parts_of(value: Any) -> Tuple[str, List[torch.Tensor]]:
    """Returns such a value as JSON and tensors, as ModuleValues of module_server.proto has it: with NaN, Infinity and -Infinity
    for such numbers, which JSON lacks. Raises TypeError of another type."""
    tensors: List[torch.Tensor] = []
    return json.dumps(_plain(value, tensors, {})), tensors


def of_parts(text: str, tensors: List[torch.Tensor]) -> Any:
    """Returns the value. Raises what json raises of other texts, or IndexError, TypeError and ValueError."""
    return _whole(json.loads(text), tensors, {})


def to_bytes(value: Any) -> bytes:
    """Returns a value of tensors, numbers, texts, bytes, and lists, tuples and dictionaries of those, as bytes.

    Raises TypeError of another type.
    """
    tensors: List[torch.Tensor] = []
    plain = _plain(value, tensors, {})
    content = io.BytesIO()
    torch.save({"json": json.dumps(plain), "tensors": tensors}, content)
    return content.getvalue()


def from_bytes(data: bytes) -> Any:
    """Returns the value. Its tensors are on the CPU. Raises what torch.load() and json raise of other bytes."""
    # PyTorch 1.13 has weights_only for tensors, and for little else.
    file = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    return _whole(json.loads(file["json"]), file["tensors"], {})


def check(value: Any) -> None:
    """Raises TypeError if the value cannot be written."""
    _plain(value, [], {})


def _plain(value: Any, tensors: List[torch.Tensor], written: Dict[int, int]) -> Any:
    """Returns JSON's form of a value, whose tensors it adds to `tensors`. Of what JSON lacks, it is a list: a name first.

    `written` has the places of bytes, by id(): what occurs often is copied once."""
    if isinstance(value, torch.Tensor):
        own = value.detach()
        # Of a view torch.save() writes the whole storage.
        tensors.append(own.clone() if own.layout == torch.strided and _storage_bytes(own) > own.numel() * own.element_size()
                       else own)
        return ["tensor", len(tensors) - 1]
    if isinstance(value, dict):
        return ["dict", *([_plain(key, tensors, written), _plain(entry, tensors, written)] for key, entry in value.items())]
    if isinstance(value, (list, tuple)):
        return ["list" if isinstance(value, list) else "tuple", *(_plain(entry, tensors, written) for entry in value)]
    if isinstance(value, bytes):
        if id(value) not in written:
            tensors.append(torch.frombuffer(bytearray(value), dtype=torch.uint8) if value else torch.empty(0, dtype=torch.uint8))
            written[id(value)] = len(tensors) - 1
        return ["bytes", written[id(value)]]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be handed to another worker; expected tensors, numbers, texts, bytes, and "
                    "lists, tuples and dictionaries of those")


def _storage_bytes(tensor: torch.Tensor) -> int:
    storage: Any = getattr(tensor, "untyped_storage", tensor.storage)  # PyTorch 1.13 has no untyped one
    size: int = storage().nbytes()
    return size


def _whole(plain: Any, tensors: List[torch.Tensor], read: Dict[int, bytes]) -> Any:
    """`read` has the bytes that were made of tensors, by their places: a text may name one tensor very often."""
    if not isinstance(plain, list):
        return plain
    name, *entries = plain
    if name == "tensor":
        return tensors[entries[0]]
    if name == "bytes":
        place = entries[0]
        if place not in read:
            read[place] = tensors[place].cpu().numpy().tobytes()
        return read[place]
    if name == "dict":
        return {_whole(key, tensors, read): _whole(entry, tensors, read) for key, entry in entries}
    values = [_whole(entry, tensors, read) for entry in entries]
    return values if name == "list" else tuple(values)
