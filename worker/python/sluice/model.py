"""A PyTorch model as one flat vector: its parameters and their gradients become views of two buffers."""

import ctypes
import weakref

import torch

from sluice import _library
from sluice._library import library
from sluice.errors import ModelError

_TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}


class _Member:
    """A tensor of the model and its range of the vectors. If it is no view, it is copied at every step."""

    def __init__(self, name, tensor, offset, is_parameter):
        self.name = name
        self.tensor = tensor
        self.offset = offset
        self.length = tensor.numel()
        self.is_parameter = is_parameter  # False: a statistic
        self.is_view = tensor.dtype == torch.float32 and tensor.device.type == "cpu"
        self.value = self.gradient = None

    @property
    def end(self):
        return self.offset + self.length


class FlatModel:
    """The parameters that an optimizer trains, and the floating-point buffers of their module.

    Parameters of float32 on the CPU are views, so nothing is copied between PyTorch and the wire. Others are converted
    and copied at every step: those on a GPU through the flat vector, which is in host memory.

    Attributes:
      values: tensor of float32, [elements]: what is pulled.
      pushed: tensor of float32, [elements]: what is pushed.
      gradients: tensor of float32, [elements]: `pushed`, unless parameters are pushed.
      members: the tensors, in the vectors' order.
    """

    def __init__(self, named_parameters, named_buffers, pushes_gradients=True):
        """The first two are lists of (name, tensor). The tensors move into other memory, and keep their values."""
        self.members = []
        offset = 0
        for tensors, is_parameter in ((named_parameters, True), (named_buffers, False)):
            for name, tensor in tensors:
                _check(name, tensor)
                self.members.append(_Member(name, tensor, offset, is_parameter))
                offset += tensor.numel()
        self.size = offset
        self._buffer = library.sluice_buffer_create(self.size)
        if not self._buffer:
            raise MemoryError(f"there is no memory for a gradient of {self.size} elements")
        floats = (ctypes.c_float * self.size).from_address(library.sluice_buffer_floats(self._buffer))
        # Whoever still has a gradient keeps `floats`, and so its memory.
        weakref.finalize(floats, library.sluice_buffer_free, self._buffer).atexit = False
        self.pushed = torch.frombuffer(floats, dtype=torch.float32)
        self.gradients = self.pushed if pushes_gradients else torch.zeros(self.size)
        self.values = torch.empty(self.size, dtype=torch.float32)
        with torch.no_grad():
            for member in self.members:
                shape = member.tensor.shape
                member.value = self.values[member.offset:member.end].view(shape)
                member.gradient = self.gradients[member.offset:member.end].view(shape)
                member.value.copy_(member.tensor)
                if member.is_view:
                    member.tensor.data = member.value
        self.bind_gradients()

    def description(self):
        """Returns the model for sluice_client_create(); keep it until that has returned."""
        tensors = (_library.Tensor * len(self.members))()
        for tensor, member in zip(tensors, self.members):
            shape = member.tensor.shape
            tensor.name = member.name.encode()
            tensor.shape = (ctypes.c_uint32 * max(1, len(shape)))(*shape)
            tensor.dimensions = len(shape)
            tensor.kind = _library.PARAMETER if member.is_parameter else _library.STATISTIC
            tensor.type = _TYPES[member.tensor.dtype]
        return _library.Model(tensors, len(self.members))

    @property
    def buffer(self):
        """The memory of what is pushed, for sluice_client_create()."""
        return self._buffer

    def bind_gradients(self):
        """Makes the gradients views again, where they can be."""
        for member in self.members:
            if member.is_parameter and member.is_view:
                member.tensor.grad = member.gradient

    def zero_gradients(self):
        self.gradients.zero_()
        self.bind_gradients()
        for member in self.members:
            if member.is_parameter and not member.is_view:
                member.tensor.grad = None

    def check_views(self):
        """Raises ModelError if a tensor of the model is not where it was: then it would not be trained."""
        for member in self.members:
            tensor = member.tensor
            if tensor.shape != member.value.shape:
                raise ModelError(f"{member.name} has shape {list(tensor.shape)}, and had {list(member.value.shape)} when "
                                 "DistributedOptimizer was made; make the optimizer after the model has its last shape")
            if member.is_view and tensor.data_ptr() != member.value.data_ptr():
                raise ModelError(
                    f"{member.name} lies in other memory than when DistributedOptimizer was made, so the server would "
                    "not train it. Move the model (.to(), .double(), load_state_dict(assign=True)) before you make the "
                    "optimizer, and copy values with tensor.copy_()")

    def gather_gradients(self):
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
                elif gradient.data_ptr() != member.gradient.data_ptr() or not member.is_view:
                    member.gradient.copy_(gradient.to_dense() if gradient.is_sparse else gradient)
        self.bind_gradients()

    def gather_values(self):
        """Copies into `values` the tensors that are no views."""
        with torch.no_grad():
            for member in self.members:
                if not member.is_view:
                    member.value.copy_(member.tensor)

    def scatter_values(self):
        """Copies `values` to the tensors that are no views."""
        with torch.no_grad():
            for member in self.members:
                if not member.is_view:
                    member.tensor.copy_(member.value)


def _check(name, tensor):
    if tensor.dtype not in _TYPES:
        raise ModelError(f"{name} has elements of {tensor.dtype}, expected float32, float64, float16 or bfloat16; a server "
                         "trains real numbers")
    if tensor.numel() == 0:
        raise ModelError(f"{name} has shape {list(tensor.shape)}, which is no element; give the optimizer tensors that have "
                         "some (a lazy module has its shapes after the first batch)")
    if tensor.layout != torch.strided:
        raise ModelError(f"{name} is a sparse tensor, expected a dense one")
