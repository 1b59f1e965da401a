"""Gradients that are sent while backward computes others."""

from typing import Any, List, Optional, Set, Tuple

import torch

from sluice import _library
from sluice._library import library
from sluice.client import Client
from sluice.errors import ModelError
from sluice.model import FlatModel

_CHUNK = 1 << 18  # elements: what is sent early is as large as the library's own chunks


class Overlap:
    """Sends the gradients of layers that backward has left, while it computes those of others."""

    def __init__(self, flat: FlatModel, client: Client) -> None:
        self._flat = flat
        self._client = client
        self._ready: Set[int] = set()
        self._twice: Optional[str] = None  # what backward() has reached a second time
        self._sent = False
        self._pending: Optional[Tuple[int, int]] = None  # neighbouring elements [begin, end) that are ready and not sent
        self._accumulators: List[Any] = []  # hooks live as long as these
        self._hooks: List[Any] = []
        for place, member in enumerate(flat.members):
            if member.is_parameter and member.gradient_is_view and member.tensor.requires_grad:
                # PyTorch 1.13 has no register_post_accumulate_grad_hook(): the node that accumulates has the hook.
                with torch.set_grad_enabled(True):  # in step() there are none
                    node: Any = member.tensor.expand_as(member.tensor).grad_fn
                accumulator = node.next_functions[0][0]
                self._hooks.append(accumulator.register_hook(lambda *_, place=place: self._note(place)))
                self._accumulators.append(accumulator)

    def _note(self, place: int) -> None:
        member = self._flat.members[place]
        if self._client.left:
            return  # it is away, and step() drops the gradient
        if not member.has_gradient():
            return  # step() copies it
        if place in self._ready:
            self._twice = member.name
            return
        self._ready.add(place)
        if self._pending is not None and self._pending[0] == member.end:
            self._pending = (member.offset, self._pending[1])
        else:
            self._flush()
            self._pending = (member.offset, member.end)
        if self._pending[1] - self._pending[0] >= _CHUNK:
            self._flush()

    def _flush(self) -> None:
        """Sends what is pending if it is worth a message; step() sends the rest."""
        if self._pending is not None and self._pending[1] - self._pending[0] >= _CHUNK // 4:
            begin, end = self._pending
            _library.check(library.sluice_send_early(self._client.handle, begin, end - begin))
            self._sent = True
        self._pending = None

    def check(self) -> None:
        """Raises what backward() had to. A hook must not: PyTorch then keeps the graph until the process's end, which
        hangs, because Python ends before."""
        if self._twice is not None:
            raise ModelError(f"backward() has reached {self._twice} twice since the last step(); with overlap, call "
                             "backward() once for each step(), or zero_grad() between them")

    def end(self) -> None:
        """Called before a push: what comes after it belongs to the next."""
        self._twice = None
        self._ready.clear()
        self._pending = None
        self._sent = False

    def close(self) -> None:
        """Gives up what was sent, and sends no more."""
        self.give_up()
        for hook in self._hooks:
            hook.remove()

    def give_up(self) -> None:
        if self._sent:
            _library.check(library.sluice_give_up_early(self._client.handle))
        self.end()
