"""What surrounds training: the workers of a launch exchange tensors, objects and a moment, over the job's server."""

import ctypes
import time
from typing import Any, List, Optional, Tuple

import torch

from sluice import _library, plain_data
from sluice._library import library
from sluice.errors import RemoteError

_MOST_BYTES = 64 << 20  # of a tensor or a value
_AT_ONCE = 3 << 20  # bytes that the server takes of all workers together
_CALL_BYTES = 512  # that say which call it is
_SLICE = 1.0  # seconds of a call, after which Python handles signals
_DEADLINE_EXCEEDED = 4
_REDUCTIONS = ("sum", "mean", "min", "max")


class Exchange:
    """The exchanges of this worker. All workers make the same calls in the same order, each in one thread."""

    def __init__(self, handle: ctypes.c_void_p, rank: Optional[int], size: Optional[int]) -> None:
        self._handle = handle
        self._rank = rank
        self._size = size
        self._begun: Optional[Tuple[bytes, ctypes.c_void_p, _library.BlockingCall]] = None  # that Ctrl-C has interrupted

    def all_reduce(self, tensor: torch.Tensor, op: str, timeout: float) -> torch.Tensor:
        if op not in _REDUCTIONS:
            raise ValueError(f"op is {op!r}, expected one of {', '.join(_REDUCTIONS)}")
        if tensor.dtype == torch.bool and op not in ("min", "max"):
            raise ValueError(f"the {op} of torch.bool is none of torch.bool; give whole numbers, or take max or min")
        if op == "mean" and not tensor.dtype.is_floating_point:
            raise ValueError(f"the mean of {tensor.dtype} is none of {tensor.dtype}; give real numbers, or take the sum")
        size = self._check_size(tensor.numel() * tensor.element_size(), "the tensor")
        own = tensor.detach().to("cpu", copy=True).contiguous().reshape(-1)
        call = f"all_reduce({op}) of {own.dtype}, shape {list(tensor.shape)}"
        step = max(1, self._room(size) // max(1, own.element_size()))
        for begin in range(0, max(1, own.numel()), step):
            given = self._gather(f"{call}, from {begin}", _bytes_of(own[begin:begin + step]), timeout)
            own[begin:begin + step] = _reduced([_tensor_of(data, own.dtype) for data in given], op)
        with torch.no_grad():
            tensor.copy_(own.reshape(tensor.shape))
        return tensor

    def broadcast(self, value: Any, root: int, timeout: float) -> Any:
        size = self._check_size(0, "")
        if not 0 <= root < size:
            raise ValueError(f"root is {root}, expected a rank from 0 to {size - 1}")
        call = f"broadcast from rank {root}"
        sends = self._rank == root
        data = _saved(value) if sends else b""
        length = int.from_bytes(self._gather(f"{call}, length", len(data).to_bytes(8, "little") if sends else b"", timeout)[root], "little")
        received = bytearray()
        while len(received) < length:
            piece = data[len(received):len(received) + self._room(1)]
            received += self._gather(f"{call}, from {len(received)}", piece, timeout)[root]
        return _loaded(bytes(received))

    def barrier(self, timeout: float) -> None:
        self._check_size(0, "")
        self._gather("barrier", b"", timeout)

    def _room(self, givers: int) -> int:
        """Returns how many bytes each of `givers` may give at once, a multiple of 8."""
        return max(8, (_AT_ONCE - _CALL_BYTES * (self._size or 0)) // givers // 8 * 8)

    def _check_size(self, size: int, what: str) -> int:
        if self._size is None:
            raise ValueError("this process has no rank: it was started by hand, or serves; launch the workers with mpirun or "
                             "srun")
        if size > _MOST_BYTES:
            raise ValueError(f"{what} has {size} bytes, and an exchange at most {_MOST_BYTES}; what is as large as a model "
                             "belongs to the model")
        return self._size

    def _gather(self, call: str, data: bytes, timeout: float) -> List[bytes]:
        """Returns what all have given. RemoteError names who is missing after `timeout` seconds, ValueError who makes another
        call: all workers see the same calls, so all raise it in the same exchange."""
        head = call.encode()[:_CALL_BYTES - 2]
        given = self._exchange(len(head).to_bytes(2, "little") + head + data, timeout)
        ends = [2 + int.from_bytes(one[:2], "little") for one in given]
        calls = [one[2:end].decode("utf-8", "replace") for one, end in zip(given, ends)]
        for rank, other in enumerate(calls):
            if other != call:
                raise ValueError(f"the workers' calls differ: rank {self._rank} calls {call}, and rank {rank} {other}; let all "
                                 "make the same calls in the same order")
        return [one[end:] for one, end in zip(given, ends)]

    def _exchange(self, data: bytes, timeout: float) -> List[bytes]:
        until = time.monotonic() + timeout
        while True:
            left = until - time.monotonic()
            try:
                gathered = self._try(data, min(_SLICE, max(0.0, left)))
                break
            except RemoteError as error:
                if error.code != "DEADLINE_EXCEEDED":
                    raise
                if left <= _SLICE:
                    raise RemoteError(f"no exchange within {timeout:g} s: {error}; let all workers make the same calls",
                                      _DEADLINE_EXCEEDED) from None
        try:
            return [_data_of(gathered, rank) for rank in range(self._size or 0)]
        finally:
            library.sluice_gathered_free(gathered)

    def _try(self, data: bytes, seconds: float) -> ctypes.c_void_p:
        """One call of the library. What Ctrl-C has interrupted goes on: if the same call is made again, it has its result."""
        if self._begun is None:
            self._begin(data, seconds)
        assert self._begun is not None
        earlier, gathered, call = self._begun
        try:
            call.wait()
        except RemoteError:
            self._begun = None
            if earlier == data:
                raise
            return self._try(data, seconds)
        self._begun = None
        if earlier == data:
            return gathered
        library.sluice_gathered_free(gathered)
        return self._try(data, seconds)

    def _begin(self, data: bytes, seconds: float) -> None:
        gathered = ctypes.c_void_p()
        call = _library.BlockingCall(library.sluice_all_gather, self._handle, data, len(data), seconds, ctypes.byref(gathered))
        self._begun = (data, gathered, call)


def _data_of(gathered: ctypes.c_void_p, rank: int) -> bytes:
    size = ctypes.c_size_t()
    address = library.sluice_gathered_data(gathered, rank, ctypes.byref(size))
    return ctypes.string_at(address, size.value) if size.value else b""


def _reduced(pieces: List[torch.Tensor], op: str) -> torch.Tensor:
    """In the order of ranks, so that all workers get the same bits."""
    result = pieces[0]
    for piece in pieces[1:]:
        if op == "min":
            result = torch.minimum(result, piece)
        elif op == "max":
            result = torch.maximum(result, piece)
        else:
            result = result + piece
    return result / len(pieces) if op == "mean" else result


def _saved(value: Any) -> bytes:
    """Returns the value as bytes; or why it has none, which the other workers are told, too."""
    try:
        data = plain_data.to_bytes(value)
    except Exception as error:  # pylint: disable=broad-except  # also RecursionError
        return f"1{type(value).__name__}: {error}".encode()[:_MOST_BYTES]
    if len(data) > _MOST_BYTES:
        return f"2the value has {len(data)} bytes, and an exchange at most {_MOST_BYTES}".encode()
    return b"0" + data


def _loaded(data: bytes) -> Any:
    if data[:1] != b"0":
        raise (TypeError if data[:1] == b"1" else ValueError)(data[1:].decode("utf-8", "replace"))
    return plain_data.from_bytes(data[1:])


def _bytes_of(values: torch.Tensor) -> bytes:
    data: bytes = values.view(torch.uint8).numpy().tobytes() if values.numel() else b""
    return data


def _tensor_of(data: bytes, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
