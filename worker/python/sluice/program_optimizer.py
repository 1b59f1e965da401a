"""The program's own optimizer on the server: sluice.start(server_optimizer=…).

The library calls it on the thread that makes steps, with the whole vectors of a model. Its state is one more vector, which the
library saves as it saves the state of Sluice's own optimizers.
"""

import copy
import ctypes
import itertools
import math
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from sluice import _library, memory
from sluice.server_optimizers import kind_crc32

Named = List[Tuple[str, torch.nn.Parameter]]
MakeOptimizer = Callable[[Named], torch.optim.Optimizer]

# Numbers lie in float32 as whole numbers below 2²², which it has exactly: 64 bits in three, and of a Python number its kind before.
_PARTS = 3
_BITS = 22
_KINDS = (type(None), bool, int, float)


class _Range(NamedTuple):
    """A parameter's range of the model's vector, and what the workers have told of its options."""
    begin: int
    end: int
    group: int  # whose learning rate it has
    kind_crc32: int


class _Entry(NamedTuple):
    """A tensor or number of the state, and its range of the state's vector."""
    owner: int  # a parameter, or after those a group of the optimizer
    key: str
    dtype: Optional[torch.dtype]  # of a tensor; None: a number
    shape: Tuple[int, ...]
    begin: int
    end: int


class OptimizerState:
    """What an optimizer remembers between its steps, as a vector: tensors and numbers, and those of its groups.

    Attributes:
      size: of the vector.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Takes a step with gradients of 0 to see what `optimizer` remembers. Neither it nor `parameters`, which it steps, are
        for training."""
        self._parameters = len(parameters)
        first = [_values_of_group(group) for group in optimizer.param_groups]
        own = _numbers_of(optimizer)
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        step: Any = type(optimizer).step  # a scheduler's own step() of a copy would step the original
        step(optimizer)
        kind = type(optimizer).__qualname__
        if _numbers_of(optimizer) != own:
            raise ValueError(f"{kind} counts in attributes of its own, which the server cannot save; expected all in its state")
        known = {id(parameter) for parameter in parameters}
        if any(id(key) not in known for key in optimizer.state):
            raise ValueError(f"{kind} has a state that belongs to no parameter, which the server cannot save")
        self._entries: List[_Entry] = []
        end = 0
        for owner in range(len(parameters) + len(first)):
            values = _owned(optimizer, parameters, owner)
            before = {} if owner < len(parameters) else first[owner - len(parameters)]
            for key, value in values.items():
                if owner >= len(parameters) and not _may_change(value, before, key, key in optimizer.defaults):
                    continue
                begin = end
                if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_complex():
                    end += value.numel() * (1 if value.dtype == torch.float32 else _PARTS)
                    self._entries.append(_Entry(owner, key, value.dtype, tuple(value.shape), begin, end))
                elif type(value) in _KINDS:
                    end += 1 + _PARTS
                    self._entries.append(_Entry(owner, key, None, (), begin, end))
                else:
                    raise ValueError(f"{kind} keeps {key!r}, of {type(value).__name__}, from step to step, which the server cannot "
                                     "save; expected tensors and numbers")
        self.size = end

    def load(self, vector: torch.Tensor, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Makes it the state of `optimizer`. Tensors of float32 become views of `vector`."""
        optimizer.state.clear()
        for entry in self._entries:
            part = vector[entry.begin:entry.end]
            if entry.dtype is None:
                value = _number_in(part)
            elif entry.dtype == torch.float32:
                value = part.view(entry.shape)
            else:
                value = _of_bits(part, entry.dtype).view(entry.shape)
            _owned(optimizer, parameters, entry.owner)[entry.key] = value

    def save(self, vector: torch.Tensor, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Writes the state of `optimizer` to `vector`."""
        count = 0
        for entry in self._entries:
            values = _owned(optimizer, parameters, entry.owner)
            value = values.get(entry.key, self)
            part = vector[entry.begin:entry.end]
            is_tensor = isinstance(value, torch.Tensor)
            if is_tensor and value.dtype == entry.dtype and value.shape == entry.shape:
                if value.dtype != torch.float32:
                    part.copy_(_bits_of(value))
                elif value.data_ptr() != part.data_ptr():
                    part.copy_(value.reshape(-1))
            elif entry.dtype is None and type(value) in _KINDS:
                part.copy_(_of_number(value))
            else:
                raise ValueError(f"{type(optimizer).__qualname__} has another {entry.key!r} after this step than after its first, "
                                 "which the server cannot save: another type or shape")
            count += entry.owner < self._parameters
        if count != sum(len(values) for values in optimizer.state.values()):
            raise ValueError(f"{type(optimizer).__qualname__} remembers more after this step than after its first, which the server "
                             "cannot save")


def _owned(optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter], owner: int) -> Dict[str, Any]:
    if owner < len(parameters):
        values: Dict[str, Any] = optimizer.state[parameters[owner]]
        return values
    return optimizer.param_groups[owner - len(parameters)]


def _values_of_group(group: Dict[str, Any]) -> Dict[str, Any]:
    return {key: copy.deepcopy(value) for key, value in group.items() if key != "params"}


def _numbers_of(optimizer: torch.optim.Optimizer) -> Dict[str, Any]:
    return {key: value for key, value in vars(optimizer).items() if type(value) in _KINDS}


def _may_change(value: Any, before: Dict[str, Any], key: str, is_option: bool) -> bool:
    """Whether a step may change this value of a group: an option that is a number, or what the first step has changed."""
    if key in ("params", "lr"):
        return False
    if key not in before or (is_option and type(value) in _KINDS[1:]):
        return True
    was = before[key]
    if isinstance(value, torch.Tensor):
        return not (isinstance(was, torch.Tensor) and torch.equal(value, was))
    return bool(value != was)


class OptimizerOfModel:
    """The optimizer of one model, which steps in the library's memory."""

    def __init__(self, make: MakeOptimizer, tensors: "Sequence[_library.ServerTensor]") -> None:
        """Makes two optimizers: one shows what it remembers, and the other trains."""
        self._ranges = []
        names, shapes = [], []
        for told in tensors:
            if told.tensor.kind == _library.PARAMETER:
                names.append(told.tensor.name.decode())
                shapes.append([told.tensor.shape[i] for i in range(told.tensor.dimensions)])
                end = told.offset + math.prod(shapes[-1])
                self._ranges.append(_Range(told.offset, end, told.group, told.kind_crc32))
        made = []
        for _ in range(2):
            self._parameters = [torch.nn.Parameter(memory.floats(*shape)) for shape in shapes]
            self._optimizer = _check(make(list(zip(names, self._parameters))))
            made.append((self._optimizer, self._parameters))
        self._rates = self._check_groups()
        self.state = OptimizerState(*made[0])
        self._first = [_values_of_group(group) for group in self._optimizer.param_groups]

    def _check_groups(self) -> List[int]:
        """Returns, for each group of the optimizer, the number of its learning rate on the server."""
        ranges = {id(parameter): place for parameter, place in zip(self._parameters, self._ranges)}
        kind = type(self._optimizer)
        taken = [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
        if {id(parameter) for parameter in taken} != set(ranges):
            raise ValueError(f"server_optimizer has made an optimizer of {len(taken)} parameters, expected the "
                             f"{len(ranges)} that it was given")
        rates = []
        for group in self._optimizer.param_groups:
            own = {ranges[id(parameter)].group for parameter in group["params"]}
            if len(own) != 1:
                raise ValueError("server_optimizer has put parameters together that are in several groups of the workers' optimizer; "
                                 "make the same groups")
            rates.append(own.pop())
            crc32 = kind_crc32(kind, {key: group[key] for key in self._optimizer.defaults if key in group})
            if any(ranges[id(parameter)].kind_crc32 != crc32 for parameter in group["params"]):
                raise ValueError(f"server_optimizer has made {kind.__qualname__}, and the workers' optimizer has another class or "
                                 "other options; only lr may differ")
        return rates

    def step(self, step: _library.ServerStep) -> None:
        """Makes a step. What it makes depends on what `step` points to alone."""
        values = memory.view_of(step.parameters, step.size)
        gradient = memory.view_of(step.gradient, step.size)
        vector = memory.view_of(step.state, step.state_size)
        for parameter, place in zip(self._parameters, self._ranges):
            parameter.data = values[place.begin:place.end].view(parameter.shape)
            parameter.grad = gradient[place.begin:place.end].view(parameter.shape)
        for group, first in zip(self._optimizer.param_groups, self._first):
            for key in [key for key in group if key != "params" and key not in first]:
                del group[key]
            group.update({key: copy.deepcopy(value) for key, value in first.items()})
        if step.number > 1:
            self.state.load(vector, self._optimizer, self._parameters)
        else:
            self._optimizer.state.clear()
        for group, rate in zip(self._optimizer.param_groups, self._rates):
            group["lr"] = step.learning_rates[rate]
        self._optimizer.step()
        self.state.save(vector, self._optimizer, self._parameters)


def _check(made: Any) -> torch.optim.Optimizer:
    if not isinstance(made, torch.optim.Optimizer):
        raise ValueError(f"server_optimizer has returned {type(made).__name__}, expected an optimizer of torch.optim")
    return made


def _bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the elements, [n], as float32, [3 · n], without a loss."""
    values = tensor.reshape(-1)
    bits = values.to(torch.float64).view(torch.int64) if values.dtype.is_floating_point else values.to(torch.int64)
    mask = (1 << _BITS) - 1
    return torch.cat([((bits >> (part * _BITS)) & mask).to(torch.float32) for part in range(_PARTS)])


def _of_bits(parts: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns what _bits_of() was given, flat."""
    bits = sum((part.to(torch.int64) << (place * _BITS) for place, part in enumerate(parts.view(_PARTS, -1))), torch.zeros((), dtype=torch.int64))
    return bits.view(torch.float64).to(dtype) if dtype.is_floating_point else bits.to(dtype)


def _of_number(value: Any) -> torch.Tensor:
    kind = _KINDS.index(type(value))
    try:
        number = torch.tensor([value or 0], dtype=torch.float64 if isinstance(value, float) else torch.int64)
    except (OverflowError, RuntimeError) as error:
        raise ValueError(f"the optimizer remembers the number {value}, which has more than 64 bits") from error
    return torch.cat([torch.tensor([float(kind)]), _bits_of(number)])


def _number_in(part: torch.Tensor) -> Any:
    kind: Any = _KINDS[int(part[0])]
    if kind is type(None):
        return None
    return kind(_of_bits(part[1:], torch.float64 if kind is float else torch.int64)[0].item())


class ServerOptimizer:
    """The functions that the library calls. It keeps what they need, and lives as long as the process."""

    def __init__(self, make: MakeOptimizer) -> None:
        self._make = make
        self._numbers = itertools.count(1)
        self._optimizers: Dict[int, OptimizerOfModel] = {}
        self.functions = _library.ServerOptimizer(None, _library.OpenOptimizer(self._open), _library.StepOptimizer(self._step),
                                                  _library.CloseOptimizer(self._optimizers.pop))

    def _open(self, _context: Any, tensors: Any, count: int, state_size: Any, error: int) -> int:
        try:
            made = OptimizerOfModel(self._make, tensors[:count])
        except BaseException as why:  # pylint: disable=broad-exception-caught  # C++ cannot take it
            _tell(why, error)
            return 0
        number = next(self._numbers)
        self._optimizers[number] = made
        state_size[0] = made.state.size
        return number

    def _step(self, number: int, step: Any, error: int) -> int:
        try:
            self._optimizers[number].step(step[0])
        except BaseException as why:  # pylint: disable=broad-exception-caught
            _tell(why, error)
            return 1
        return 0


def _tell(why: BaseException, error: int) -> None:
    """Prints the exception, and writes it to the library's buffer. Raises nothing."""
    text = type(why).__name__
    try:
        traceback.print_exception(type(why), why, why.__traceback__)
        text = f"{text}: {why}"
    except Exception:  # pylint: disable=broad-exception-caught  # of the exception's own code, or a closed stderr
        pass
    room = _library.OPTIMIZER_ERROR - 1
    content = text.replace("\0", " ").encode(errors="backslashreplace")[:room].decode(errors="ignore").encode()
    ctypes.memmove(error, content + b"\0", len(content) + 1)
