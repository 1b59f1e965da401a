"""The program's own optimizer on the server: sluice.start(server_optimizer=…).

The library calls it on the thread that makes steps, with the whole vectors of a model. Its state is one more vector, which the
library saves as it saves the state of Sluice's own optimizers.
"""

import ctypes
import itertools
import traceback
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import torch

from sluice import _library, memory
from sluice.server_optimizers import kind_crc32

Named = List[Tuple[str, torch.nn.Parameter]]
MakeOptimizer = Callable[[Named], torch.optim.Optimizer]

_NUMBER = 4  # float32 that hold a float64: three of its fraction, one of its exponent


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
    form: Any  # a tensor of the same shape and type, or the number's type
    begin: int
    end: int


class OptimizerState:
    """What an optimizer remembers between its steps, as a vector: tensors and numbers, and those of its groups.

    Attributes:
      size: of the vector.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Takes one step with gradients of 0 to see what `optimizer`, which is new, remembers; then forgets it.

        Args:
          parameters: those that it steps, in the order in which they lie in the vector.
        """
        self._optimizer = optimizer
        self._parameters = parameters
        # What a step may change in a group, as it is before the first one.
        self._first = [{key: value for key, value in group.items() if key != "lr" and _is_number(value)}
                       for group in optimizer.param_groups]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        self._entries = self._find_entries()
        self.size = self._entries[-1].end if self._entries else 0
        self.clear()

    def _values_of(self, owner: int) -> Dict[str, Any]:
        if owner < len(self._parameters):
            values: Dict[str, Any] = self._optimizer.state[self._parameters[owner]]
            return values
        return self._optimizer.param_groups[owner - len(self._parameters)]

    def _find_entries(self) -> List[_Entry]:
        """Returns what the optimizer remembers now, each at its place in the vector."""
        entries: List[_Entry] = []
        end = 0
        for owner in range(len(self._parameters) + len(self._first)):
            values = self._values_of(owner)
            for key in values if owner < len(self._parameters) else self._first[owner - len(self._parameters)]:
                value = values[key]
                begin = end
                if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_complex():
                    end += value.numel() * (1 if value.dtype == torch.float32 else _NUMBER)
                elif _is_number(value):
                    end += _NUMBER
                elif value is not None:
                    raise ValueError(f"{type(self._optimizer).__qualname__} keeps {key!r}, of {type(value).__name__}, from step to "
                                     "step, which the server cannot save; expected tensors and numbers")
                form = torch.empty_like(value) if isinstance(value, torch.Tensor) else type(value)
                entries.append(_Entry(owner, key, form, begin, end))
        return entries

    def clear(self) -> None:
        """Makes it that before the first step."""
        self._optimizer.state.clear()
        for group, first in zip(self._optimizer.param_groups, self._first):
            group.update(first)

    def load(self, vector: torch.Tensor) -> None:
        """Makes it what `vector` has. Tensors of float32 become views of it."""
        for entry in self._entries:
            part = vector[entry.begin:entry.end]
            if not isinstance(entry.form, torch.Tensor):
                value = None if entry.begin == entry.end else entry.form(_numbers_in(part)[0].item())
            elif entry.form.dtype == torch.float32:
                value = part.view(entry.form.shape)
            else:
                value = _numbers_in(part).view(entry.form.shape).to(entry.form.dtype)
            self._values_of(entry.owner)[entry.key] = value

    def save(self, vector: torch.Tensor) -> None:
        """Writes it to `vector`."""
        remembered = [(one.owner, one.key, one.end) for one in self._find_entries()]
        if remembered != [(one.owner, one.key, one.end) for one in self._entries]:
            raise ValueError(f"{type(self._optimizer).__qualname__} remembers other things after this step than after its first, "
                             "which the server cannot save")
        for entry in self._entries:
            value = self._values_of(entry.owner)[entry.key]
            part = vector[entry.begin:entry.end]
            if value is None:
                continue
            if not isinstance(value, torch.Tensor):
                part.copy_(_of_numbers(torch.tensor([value], dtype=torch.float64)))
            elif value.dtype != torch.float32:
                part.copy_(_of_numbers(value.reshape(-1).to(torch.float64)))
            elif value.data_ptr() != part.data_ptr():
                part.copy_(value.reshape(-1))


class OptimizerOfModel:
    """The optimizer of one model, which steps in the library's memory."""

    def __init__(self, make: MakeOptimizer, tensors: "Sequence[_library.ServerTensor]") -> None:
        names, self._parameters, self._ranges = [], [], []
        for told in tensors:
            if told.tensor.kind == _library.PARAMETER:
                parameter = torch.nn.Parameter(memory.floats(*(told.tensor.shape[i] for i in range(told.tensor.dimensions))))
                names.append(told.tensor.name.decode())
                self._parameters.append(parameter)
                self._ranges.append(_Range(told.offset, told.offset + parameter.numel(), told.group, told.kind_crc32))
        self._optimizer = make(list(zip(names, self._parameters)))
        self._rates = self._check_groups()
        self.state = OptimizerState(self._optimizer, self._parameters)

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
        self.state.clear()
        if step.number > 1:
            self.state.load(vector)
        for group, rate in zip(self._optimizer.param_groups, self._rates):
            group["lr"] = step.learning_rates[rate]
        self._optimizer.step()
        self.state.save(vector)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _of_numbers(values: torch.Tensor) -> torch.Tensor:
    """Returns float64, [n], as float32, [_NUMBER · n], without a loss."""
    rest, exponents = torch.frexp(values)
    parts = []
    for _ in range(_NUMBER - 1):
        parts.append(rest.to(torch.float32))
        rest = rest - parts[-1].to(torch.float64)
    return torch.cat([*parts, exponents.to(torch.float32)])


def _numbers_in(parts: torch.Tensor) -> torch.Tensor:
    """Returns what _of_numbers() was given."""
    *fractions, exponents = parts.to(torch.float64).view(_NUMBER, -1)
    return torch.ldexp(sum(fractions[1:], fractions[0]), exponents)


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
    """Prints the exception, and writes it to the library's buffer."""
    traceback.print_exception(type(why), why, why.__traceback__)
    text = f"{type(why).__name__}: {why}".encode()[:_library.OPTIMIZER_ERROR - 1]
    ctypes.memmove(error, text + b"\0", len(text) + 1)
