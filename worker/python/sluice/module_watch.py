"""Notices that a program has put other tensors in the place of those that a server trains."""

import operator
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import torch

from sluice.errors import ModelError
from sluice.model import Member

_LATE = "after the model was given to Sluice"


class _Entries:
    """The parameters, buffers or modules of one module, and what it had at first, by their names in it."""

    def __init__(self, path: str, module: torch.nn.Module, now: Any) -> None:
        self._prefix = f"{path}." if path else ""
        self._module = module
        self.now = now  # the module's own dict
        self.accept()

    def changed(self) -> bool:
        return len(self.now) != len(self.before) or not all(map(operator.is_, self.now.values(), self.before.values()))

    def changes(self) -> List[Tuple[str, str, Any, Any]]:
        """Returns (key, name in the model, before, now) of what has changed. Buffers that are not persistent may."""
        before, now = self.before, dict(self.now.items())
        own = self._module._non_persistent_buffers_set  # pylint: disable=protected-access
        return [(key, self._prefix + key, before.get(key), now.get(key)) for key in {**before, **now}
                if key not in own and before.get(key) is not now.get(key)]

    def accept(self) -> None:
        self.before: Dict[str, Any] = dict(self.now.items())


class ModuleWatch:
    """Looks at all tensors of a module by their names. It costs no call of PyTorch unless one was replaced."""

    def __init__(self, module: Optional[torch.nn.Module], members: Sequence[Member], frozen: Set[int]) -> None:
        """`members` are the tensors that the server has; without a module none can be looked up.

        `frozen` has the id() of each parameter that is not trained.
        """
        self._members = {id(member.tensor): member for member in members}
        self._frozen = frozen
        self._entries: List[_Entries] = []
        for path, part in [] if module is None else module.named_modules():
            # pylint: disable=protected-access
            self._entries += [_Entries(path, part, entries)
                              for entries in (part._parameters, part._buffers, part._modules)]
        self._names = Counter(id(value) for entries in self._entries for value in entries.before.values())

    def adopt(self) -> None:
        """Takes the values of buffers that were replaced, as `self.ema = 0.9 * self.ema + …` does.

        Raises:
          ModelError: another tensor was replaced, added or removed, which the server would not train.
        """
        for entries in self._entries:
            if entries.changed():
                for key, name, before, now in entries.changes():
                    self._take(entries, key, name, before, now)
                entries.accept()

    def _take(self, entries: _Entries, key: str, name: str, before: Any, now: Any) -> None:
        member = self._members.get(id(before))
        is_new = before is None or isinstance(now, torch.nn.Module)
        if member is None or isinstance(before, torch.nn.Parameter) or not isinstance(now, torch.Tensor):
            if any(id(tensor) in self._members or id(tensor) in self._frozen for tensor in _state_of(before)) or (is_new and _state_of(now)):
                done = "added" if before is None else "replaced" if now is not None else "removed"
                raise ModelError(f"{name} was {done} {_LATE}, and the server would not train what is there now; make the "
                                 "optimizer after the model has all its tensors, and set values with copy_()")
            return
        if self._names[id(before)] > 1:
            raise ModelError(f"{name} was replaced {_LATE}, and the model has that tensor under another name, too; set its "
                             "values with copy_()")
        tensor = now.detach()
        if tensor.shape != before.shape or not (tensor.is_floating_point() or tensor.dtype == before.dtype):
            raise ModelError(f"{name} has {tensor.dtype} and shape {list(tensor.shape)}, and had {before.dtype} and "
                             f"{list(before.shape)} when it was given to Sluice; keep its type and shape")
        if not member.is_view:
            del self._members[id(before)]
            self._members[id(now)] = member
            self._names[id(now)] = 1
            member.tensor = now
            return
        if (tensor.dtype, tensor.device) != (before.dtype, before.device):
            raise ModelError(f"{name} has {tensor.dtype} on {tensor.device}, and had {before.dtype} on {before.device} when "
                             "it was given to Sluice; move the model (.to(), .double()) before you make the optimizer")
        with torch.no_grad():
            before.copy_(tensor)
        entries.now[key] = before  # it lies in the vector


def _state_of(value: Any) -> List[torch.Tensor]:
    """Returns what a server would have of a module or a tensor: parameters, and buffers of real numbers."""
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *(buffer for buffer in value.buffers() if buffer.is_floating_point())]
    is_state = isinstance(value, torch.nn.Parameter) or (isinstance(value, torch.Tensor) and value.is_floating_point())
    return [value] if is_state else []
