"""A PyTorch model as one flat vector: its parameters and their gradients become views of two buffers."""

import ctypes
import weakref
from typing import List, Sequence, Set, Tuple

import torch

from sluice import _library, memory
from sluice._library import library
from sluice.errors import ModelError

_TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3, torch.int64: 4}


Named = Sequence[Tuple[str, torch.Tensor]]  # tensors with their names

_ALIGNMENT = 64  # bytes: that of PyTorch's own memory


class Member:
    """A tensor of the model and its range of the vectors. If it is no view, it is copied at every step."""

    def __init__(self, name: str, tensor: torch.Tensor, offset: int, is_parameter: bool) -> None:
        self.name = name
        self.tensor = tensor
        self.offset = offset
        self.length = tensor.numel()
        self.is_parameter = is_parameter  # False: a statistic
        self.is_copied = tensor.dtype != torch.float32 or tensor.device.type != "cpu"  # through the vector
        # Whether the tensor, and its gradient, are views of FlatModel's vectors.
        self.is_view = self.gradient_is_view = not self.is_copied
        # FlatModel sets these: views of its vectors, and where the value lies.
        self.value = self.gradient = tensor
        self.address = 0

    @property
    def end(self) -> int:
        return self.offset + self.length

    def has_gradient(self) -> bool:
        """Whether the tensor's gradient lies in the vector. A sparse one has no address; `grad.data = …` moves a dense one."""
        gradient = self.tensor.grad
        return (gradient is not None and gradient.layout == torch.strided and self.gradient_is_view
                and gradient.data_ptr() == self.gradient.data_ptr())

    def take(self, value: torch.Tensor) -> None:
        """Copies a value of float32 to the tensor. What a tensor of float64 has beyond float32 stays if that is equal."""
        value = value.to(self.tensor.device)
        if self.tensor.dtype == torch.int64:
            value = value.round()  # a count of batches: a mean of several workers' counts
        if self.tensor.dtype == torch.float64 and not self.is_parameter:
            value = torch.where(self.tensor.to(torch.float32) == value, self.tensor, value.to(torch.float64))
        self.tensor.copy_(value)


class FlatModel:
    """The parameters that an optimizer trains, and the floating-point buffers of their module.

    Parameters of float32 on the CPU are views, so nothing is copied between PyTorch and the wire. Others are converted
    and copied at every step: those on a GPU through the flat vector, which is in host memory. If the others have more
    than half of the elements, no tensor is a view, and one vector carries gradients and values in turn. If the workers
    step themselves, one vector carries gradients both ways, and the tensors stay where they are.

    Attributes:
      values: tensor of float32, [elements]: what is pulled.
      pushed: tensor of float32, [elements]: what is pushed.
      has_one_buffer: whether these two are one. It holds values from a pull, or gather_values(), to the next
        gather_gradients().
      gradients: tensor of float32, [elements]: `pushed`, unless parameters are pushed.
      members: the tensors, in the vectors' order.
    """

    def __init__(self, named_parameters: Named, named_buffers: Named, pushes_gradients: bool = True,
                 has_tables: bool = False, pulls_gradients: bool = False) -> None:
        """The first two are lists of (name, tensor). The tensors move into other memory, and keep their values."""
        self.members = members_of(named_parameters, named_buffers, has_tables)
        self.size = size_of(self.members)
        copied = sum(member.length for member in self.members if member.is_copied)
        self.has_one_buffer = pulls_gradients or (pushes_gradients and 2 * copied > self.size)
        self._pulls_gradients = pulls_gradients
        self._buffer, self.pushed = shared_vector(self.size)
        self.gradients = self.pushed if pushes_gradients else memory.floats(self.size)
        self._memory, self.values = (None, self.pushed) if self.has_one_buffer else _own_vector(self.size)
        self._versions: List[int] = []
        self._address = memory.address_of(self.values, torch.float32, self.size)
        self._pushed_address = memory.address_of(self.pushed, torch.float32, self.size)
        with torch.no_grad():
            for member in self.members:
                shape = member.tensor.shape
                member.value = self.values[member.offset:member.end].view(shape)
                member.gradient = self.gradients[member.offset:member.end].view(shape)
                if not self.has_one_buffer:
                    member.value.copy_(member.tensor)
                member.address = member.value.data_ptr()
                member.is_view = member.is_view and not self.has_one_buffer
                member.gradient_is_view = member.is_view or (pulls_gradients and not member.is_copied)
                if member.is_view:
                    member.tensor.data = member.value
        self.bind_gradients()

    def description(self) -> _library.Model:
        """Returns the model for sluice_client_create(); keep it until that has returned."""
        return description_of(self.members)

    @property
    def buffer(self) -> int:
        """The memory of what is pushed, for sluice_client_create()."""
        return self._buffer

    @property
    def address(self) -> int:
        """Where the library writes what is pulled. PyTorch cannot free it: share_memory() moves tensors."""
        return self._address

    def bind_gradients(self) -> None:
        """Makes the gradients views again, where they can be."""
        for member in self.members:
            if member.is_parameter and member.gradient_is_view and not member.has_gradient():
                member.tensor.grad = member.gradient.detach()  # another tensor, as the program may move it

    def zero_gradients(self) -> None:
        if self._pulls_gradients or not self.has_one_buffer:  # else gather_gradients() writes all of it
            self.gradients.zero_()
        self.bind_gradients()
        for member in self.members:
            if member.is_parameter and not member.gradient_is_view:
                member.tensor.grad = None

    def check_views(self) -> None:
        """Raises ModelError if a tensor of the model is not where it was: then it would not be trained."""
        for member in self.members:
            tensor = member.tensor
            if tensor.shape != member.value.shape:
                raise ModelError(f"{member.name} has shape {list(tensor.shape)}, and had {list(member.value.shape)} when "
                                 "DistributedOptimizer was made; make the optimizer after the model has its last shape")
            if member.is_view and (tensor.data_ptr() != member.address or tensor.stride() != member.value.stride()):
                raise ModelError(
                    f"{member.name} lies in other memory than when DistributedOptimizer was made, so the server would "
                    "not train it. Move the model (.to(), .double(), share_memory(), load_state_dict(assign=True)) and "
                    "set its values before you make the optimizer")
        if self.pushed.data_ptr() != self._pushed_address or self.values.data_ptr() != self._address:
            raise ModelError("the model's parameters or gradients were moved into shared memory after "
                             "DistributedOptimizer was made; call share_memory() before, or give other processes copies")

    def gather_gradients(self) -> None:
        """Copies into `gradients` what is not there yet: gradients that are no views, and the values of statistics."""
        with torch.no_grad():
            for member in self.members:
                if not member.is_parameter:
                    member.gradient.copy_(member.tensor)
                    continue
                gradient = member.tensor.grad
                if gradient is None:
                    # After model.zero_grad(set_to_none=True) backward did not reach this parameter.
                    member.gradient.zero_()
                elif not member.has_gradient():
                    member.gradient.copy_(gradient if gradient.layout == torch.strided else gradient.to_dense())
        self.bind_gradients()

    def gather_values(self) -> None:
        """Copies into `values` the tensors that are no views."""
        with torch.no_grad():
            for member in self.members:
                if not member.is_view:
                    member.value.copy_(member.tensor)

    def scatter_values(self) -> None:
        """Copies `values` to the tensors that are no views."""
        with torch.no_grad():
            for member in self.members:
                if not member.is_view:
                    member.take(member.value)

    def note_values(self) -> None:
        """The parameters have the job's values."""
        self._versions = [member.tensor._version for member in self.members if member.is_parameter]

    def written(self) -> str:
        """Returns the name of a parameter into which the program has written since note_values(); "" if there is none.

        PyTorch counts what is written into a tensor, but not through its `data`.
        """
        parameters = (member for member in self.members if member.is_parameter)
        return next((member.name for member, version in zip(parameters, self._versions)
                     if member.tensor._version != version), "")

    def scatter_gradients(self) -> None:
        """Copies a mean gradient that was pulled to those that are no views, and the values of statistics."""
        self.take_statistics()
        with torch.no_grad():
            for member in self.members:
                if member.is_parameter and not member.gradient_is_view:
                    member.tensor.grad = member.gradient.to(member.tensor.device, member.tensor.dtype, copy=True)

    def take_statistics(self) -> None:
        """Copies the values of statistics, in a vector that carries gradients."""
        with torch.no_grad():
            for member in self.members:
                if not member.is_parameter:
                    member.take(member.value)


def members_of(named_parameters: Named, statistics: Named, has_tables: bool) -> List[Member]:
    """Returns the members of a model, in the vectors' order. The statistics are tensors that workers average.

    Raises:
      ModelError: a tensor cannot be trained with a server, or there is none and the model has no tables either.
    """
    members = []
    offset = 0
    for tensors, is_parameter in ((named_parameters, True), (statistics, False)):
        for name, tensor in tensors:
            _check(name, tensor, is_parameter)
            members.append(Member(name, tensor, offset, is_parameter))
            offset += tensor.numel()
    if not members and not has_tables:
        raise ModelError("the model has no parameter that requires a gradient, no statistics and no RemoteEmbedding; "
                         "expected at least one of them")
    return members


def size_of(members: Sequence[Member]) -> int:
    """Returns the number of elements of the vectors; 0 for a model of tables only."""
    return members[-1].end if members else 0


def named_statistics(model: torch.nn.Module) -> Named:
    """Returns (name, tensor) of what workers average: buffers of real numbers, and the counts of batch normalization.

    Those with a number that is not finite in float32, such as a mask of -inf, cannot be averaged: they are constants.
    Buffers that are no part of the model's state (persistent=False) stay each worker's own.
    """
    own = own_buffers(model)
    counts = {id(getattr(module, "num_batches_tracked", None)) for module in model.modules()
              if isinstance(module, torch.nn.modules.batchnorm._NormBase)}  # pylint: disable=protected-access
    return [(name, tensor) for name, tensor in model.named_buffers()
            if name not in own and (_fits_vector(tensor) or (id(tensor) in counts and tensor.dtype == torch.int64))]


def own_buffers(model: torch.nn.Module) -> Set[str]:
    """Returns the names of buffers that are no part of the model's state."""
    return {f"{prefix}.{name}" if prefix else name for prefix, module in model.named_modules()
            for name in module._non_persistent_buffers_set}  # pylint: disable=protected-access


def _fits_vector(tensor: torch.Tensor) -> bool:
    known = tensor.layout == torch.strided and tensor.dtype in _TYPES and tensor.is_floating_point()
    return known and tensor.numel() > 0 and bool(torch.isfinite(tensor.to(torch.float32)).all())


def description_of(members: Sequence[Member]) -> _library.Model:
    """Returns the model for the library; keep it until its call has returned."""
    tensors = (_library.Tensor * len(members))()
    for tensor, member in zip(tensors, members):
        shape = member.tensor.shape
        tensor.name = member.name.encode()
        tensor.shape = (ctypes.c_uint32 * max(1, len(shape)))(*shape)
        tensor.dimensions = len(shape)
        tensor.kind = _library.PARAMETER if member.is_parameter else _library.STATISTIC
        tensor.type = _TYPES[member.tensor.dtype]
    return _library.Model(tensors, len(members))


def shared_vector(size: int) -> Tuple[int, torch.Tensor]:
    """Returns memory that a server on this node can read, and a tensor of float32, [size], of its floats."""
    buffer = library.sluice_buffer_create(size)
    if not buffer:
        raise MemoryError(f"there is no memory for a vector of {size} elements")
    if size == 0:  # frombuffer() takes no memory without elements
        nothing = memory.floats(0)
        weakref.finalize(nothing, library.sluice_buffer_free, buffer).atexit = False
        return buffer, nothing
    floats = (ctypes.c_float * size).from_address(library.sluice_buffer_floats(buffer))
    # Whoever still has the tensor keeps `floats`, and so its memory.
    weakref.finalize(floats, library.sluice_buffer_free, buffer).atexit = False
    return buffer, torch.frombuffer(floats, dtype=torch.float32)


def _own_vector(size: int) -> Tuple[object, torch.Tensor]:
    """Returns memory that PyTorch does not own, and a tensor of float32, [size], of its floats."""
    if size == 0:
        return None, memory.floats(0)
    owned = (ctypes.c_char * (4 * size + _ALIGNMENT))()
    return owned, torch.frombuffer(owned, dtype=torch.float32, count=size, offset=-ctypes.addressof(owned) % _ALIGNMENT)


def _check(name: str, tensor: torch.Tensor, is_parameter: bool) -> None:
    if tensor.dtype not in _TYPES or (is_parameter and not tensor.is_floating_point()):
        raise ModelError(f"{name} has elements of {tensor.dtype}, expected float32, float64, float16 or bfloat16; a server "
                         "trains real numbers")
    if tensor.numel() == 0:
        raise ModelError(f"{name} has shape {list(tensor.shape)}, which is no element; give the optimizer tensors that have "
                         "some (a lazy module has its shapes after the first batch)")
    if tensor.layout != torch.strided:
        raise ModelError(f"{name} is a sparse tensor, expected a dense one")
